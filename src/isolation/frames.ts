import { writeSync } from "node:fs";
import type { Readable } from "node:stream";
import { deserialize, serialize } from "node:v8";

/** Largest message of a child, in bytes, so that a child cannot fill its host's memory. */
export const MAX_FRAME_BYTES = 16 * 1_048_576;
/** A message follows its length, which takes so many bytes. */
const LENGTH_BYTES = 4;

/**
 * Writes a message to a pipe and waits, without giving up the thread, until its reader has room for it: so a writer is never
 * far ahead of its reader. @throws RangeError for a message that is too large.
 */
export function writeFrame(fd: number, message: unknown): void {
  const body = serialize(message);
  if (body.length > MAX_FRAME_BYTES) throw new RangeError(`a message of ${body.length} bytes is too large`);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + body.length);
  frame.writeUInt32LE(body.length);
  body.copy(frame, LENGTH_BYTES);
  for (let at = 0; at < frame.length; ) at += writeSync(fd, frame, at);
}

/** The messages of a pipe, read no faster than they are wanted. @throws RangeError for a message that is too large. */
export async function* readFrames(pipe: Readable): AsyncGenerator<unknown, void> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let bodyBytes: number | undefined;
  for await (const bytes of pipe as AsyncIterable<Buffer>) {
    held.push(bytes);
    heldBytes += bytes.length;
    while (heldBytes >= LENGTH_BYTES + (bodyBytes ?? 0)) {
      const [first = bytes] = held;
      const all = held.length === 1 ? first : Buffer.concat(held, heldBytes);
      held = [all];
      if (bodyBytes === undefined) {
        bodyBytes = all.readUInt32LE(0);
        if (bodyBytes > MAX_FRAME_BYTES) throw new RangeError(`a message of ${bodyBytes} bytes is too large`);
        continue;
      }
      const end = LENGTH_BYTES + bodyBytes;
      held = [all.subarray(end)];
      heldBytes -= end;
      bodyBytes = undefined;
      yield deserialize(all.subarray(LENGTH_BYTES, end));
    }
  }
}
