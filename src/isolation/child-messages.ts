import { writeSync } from "node:fs";
import type { Readable } from "node:stream";
import { deserialize, serialize } from "node:v8";
import type { AppErrorOptions, ErrorCode } from "../lib/errors.ts";

/** A message from the host to a child: one request at a time. */
export type ChildRequest<Request> = { id: number; request: Request };

/** A message from a child: parts of the response, then its end; or an error at any time. `cpuMs`: the request's processor time. */
export type ChildMessage<Part> =
  | { id: number; kind: "part"; part: Part }
  | { id: number; kind: "end"; cpuMs: number }
  | { id: number; kind: "error"; error: ChildError; cpuMs: number };

/** An AppError as it is sent between processes. Its cause is text, for the log. */
export type ChildError = {
  code: ErrorCode;
  message: string;
  options: Omit<AppErrorOptions, "cause"> & { cause: string };
};

/** File descriptor of a child's messages. Requests come through the channel that `fork` opens. */
export const MESSAGES_FD = 4;

/** A child's first message. */
export const READY = "ready";

/** Largest message of a child, in bytes, so that a child cannot fill its host's memory. */
const MAX_FRAME_BYTES = 16 * 1_048_576;
/** Bytes of a message's length, which precedes it. */
const LENGTH_BYTES = 4;

/** A message as it is written. @throws RangeError for one that is too large. */
export function toFrame(message: unknown): Buffer {
  const body = serialize(message);
  if (body.length > MAX_FRAME_BYTES) throw new RangeError(`a message of ${body.length} bytes is too large`);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + body.length);
  frame.writeUInt32LE(body.length);
  body.copy(frame, LENGTH_BYTES);
  return frame;
}

/** Writes all bytes, and blocks the thread until their reader has room. @throws a system's error. */
export function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

/** Writes a message. @throws as `toFrame` and `writeWhole`. */
export const writeFrame = (fd: number, message: unknown): void => writeWhole(fd, toFrame(message));

/** Reads the messages of a pipe, no faster than they are consumed. @throws RangeError for a message that is too large. */
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
