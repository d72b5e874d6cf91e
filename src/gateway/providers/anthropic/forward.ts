import { defined } from "../../../lib/defined.ts";
import { tryParseJson } from "../../../lib/try-parse-json.ts";
import { makeEvents, makeWholeBody } from "../event-stream.ts";
import type { CallContext, Forwarding, RawAnswer, RawEvents, RawRequest } from "../provider.ts";
import { readReported } from "../reported-errors.ts";
import type { makeWireClient } from "../wire-client.ts";
import { fromReportedError, malformed } from "../wire-errors.ts";
import { measureMessage, readMessage } from "./chat.ts";
import { makeMessageReader } from "./stream.ts";

type Client = Pick<ReturnType<typeof makeWireClient>, "sendRaw" | "openRaw">;

/** Forwards requests of the Messages API. Only the parts of the answers that determine the cost are read. */
export function makeForwarding(client: Client): Forwarding {
  return {
    async send(request, context) {
      const body = await client.sendRaw(request, context, measureMessage);
      if (readReported(tryParseJson(body)) !== undefined) requireMessage(body); // throws what it reports
      return { body, ...toAbout(body) };
    },
    stream: (request, context) => streamRaw(client, request, context),
  };
}

function toAbout(body: string): Omit<RawAnswer, "body"> {
  const result = readMessage(tryParseJson(body));
  if (result === undefined) return { text: "" };
  const { text, finishReason, usage, responseId, model } = result;
  return { text, ...defined({ finishReason, usage, responseId, model }) };
}

/** Yields only whole events, so that a stream that breaks off can still end with an event. */
async function* streamRaw(client: Client, request: RawRequest, context: CallContext): AsyncGenerator<RawEvents> {
  const reader = makeMessageReader();
  const events = makeEvents(reader);
  const whole = makeWholeBody();
  let isGivenUp = false;
  let hasYielded = false;
  let rest: Buffer = Buffer.alloc(0);
  try {
    const stream = await client.openRaw(request, context, () => {
      isGivenUp = true;
    });
    for await (const chunk of stream.chunks) {
      if (whole.take(chunk)) continue;
      const parts = events.feed(chunk);
      if (reader.isDone()) stream.finish();
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const end = endOfEvents(rest);
      const bytes = rest.subarray(0, end);
      rest = rest.subarray(end);
      const failure = events.failure();
      if (failure !== undefined && !hasYielded) throw failure;
      if (bytes.length > 0) {
        hasYielded = true;
        yield failure === undefined ? { bytes, parts } : { bytes, parts, failure };
      }
      if (failure !== undefined) throw failure;
      if (reader.isDone()) return;
    }
  } finally {
    if (!hasYielded && (isGivenUp || events.hasBegun())) {
      const promptUsage = reader.promptUsage();
      context.onCharged?.(promptUsage === undefined ? {} : { promptUsage });
    }
  }
  const body = whole.text();
  if (body !== undefined) {
    const bytes = Buffer.from(toMessageStream(requireMessage(body)));
    yield { bytes, parts: events.feed(bytes) };
    return;
  }
  if (!reader.isWhole()) throw events.endedEarly();
  if (rest.length > 0) yield { bytes: rest, parts: [] };
}

/** The message of a body. @throws AppError the error that the body reports instead, or `provider_failed`. */
function requireMessage(body: string): Record<string, unknown> {
  const parsed = tryParseJson(body);
  if (readMessage(parsed) !== undefined) return Object(parsed);
  throw readReported(parsed) === undefined
    ? malformed("an answer that is not a message")
    : fromReportedError(Object(parsed).error ?? parsed);
}

/** Where the last whole event of these bytes ends. */
const endOfEvents = (bytes: Buffer) => Math.max(endOf(bytes, "\n\n"), endOf(bytes, "\r\n\r\n"));

function endOf(bytes: Buffer, mark: string): number {
  const at = bytes.lastIndexOf(mark);
  return at < 0 ? 0 : at + mark.length;
}

type Block = Record<string, unknown>;

const toEvent = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** A whole message as stream events, for a reader that asked for a stream. */
function toMessageStream(message: Record<string, unknown>): string {
  const { content, stop_reason, stop_sequence = null, usage } = message;
  const blocks: Block[] = Array.isArray(content) ? content : [];
  const begun = { ...message, content: [], stop_reason: null, stop_sequence: null };
  return [
    toEvent("message_start", { message: begun }),
    ...blocks.flatMap((block, index) => [
      toEvent("content_block_start", { index, content_block: emptied(block) }),
      ...deltasOf(block).map((delta) => toEvent("content_block_delta", { index, delta })),
      toEvent("content_block_stop", { index }),
    ]),
    toEvent("message_delta", { delta: { stop_reason, stop_sequence }, usage }),
    toEvent("message_stop", {}),
  ].join("");
}

/** The start of a block. Kinds that are not streamed in parts are complete at once. */
function emptied(block: Block): Block {
  if (block.type === "text") return { ...block, text: "" };
  if (block.type === "thinking") return { ...block, thinking: "", signature: "" };
  return block.type === "tool_use" ? { ...block, input: {} } : block;
}

function deltasOf({ type, text, thinking, signature, input }: Block): object[] {
  if (type === "text") return [{ type: "text_delta", text }];
  if (type === "tool_use") return [{ type: "input_json_delta", partial_json: JSON.stringify(input ?? {}) }];
  if (type !== "thinking") return [];
  return [
    { type: "thinking_delta", thinking },
    { type: "signature_delta", signature },
  ];
}
