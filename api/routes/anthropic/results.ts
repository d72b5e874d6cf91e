import type { MessageResult } from "../../../src/batches/file/write-answers.ts";
import { toAnthropicError } from "./errors.ts";

/** Bytes of a line by which it is known what it is: an id of 64 at most, and the type of the result. */
const HEAD_BYTES = 160;
const NEW_LINE = 10;

/** The results as Anthropic's clients read them. Most lines are messages, which go on as they come, however long they are. */
export async function* toAnthropicResults(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0); // the start of a line that is not known yet, or an error's
  let isPassing = false; // in a line that goes on as it is
  for await (const piece of pieces) {
    const ready: Buffer[] = [];
    held = Buffer.concat([held, piece]);
    while (held.length > 0) {
      const end = held.indexOf(NEW_LINE) + 1;
      const line = end === 0 ? held : held.subarray(0, end);
      if (!isPassing && end === 0 && (held.length < HEAD_BYTES || isError(held))) break;
      ready.push(!isPassing && isError(line) ? toErrorLine(line) : line);
      isPassing = end === 0;
      held = held.subarray(line.length);
    }
    yield Buffer.concat(ready);
  }
  yield held;
}

/** By its head, which an id and the text of a message cannot look like. */
const isError = (line: Buffer) => line.subarray(0, HEAD_BYTES).includes('"result":{"type":"errored"');

function toErrorLine(line: Buffer): Buffer {
  const { result, ...head }: { result: Extract<MessageResult, { type: "errored" }> } = JSON.parse(
    line.toString("utf8"),
  ); // as it was written
  const { body: error } = toAnthropicError({ ...result.error, requestId: result.jobId });
  return Buffer.from(`${JSON.stringify({ ...head, result: { type: result.type, error } })}\n`);
}
