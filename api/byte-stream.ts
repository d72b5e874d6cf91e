import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { AppError } from "../src/lib/errors.ts";
import type { BytesReply } from "./route.ts";

/** What waits in memory for one reader beside the piece that was read last, in bytes. */
const SLICE_BYTES = 64 << 10;
/** Memory that one reader of a stream of bytes has set aside: a piece of which slices wait, and the one that is read after it. */
export const READER_BYTES = 512 << 10;
/**
 * The least pace of a reader, in bytes a second: that of large bodies that come in. It is measured over this time, in ms, since a
 * system takes megabytes at once for a reader and then nothing for long.
 */
const LEAST_BYTES_PER_SECOND = 32 << 10;
const MEASURE_MS = 60_000;

/**
 * Writes the bytes of a reply as the client takes them, and ends it: no more is read than what waits to be sent. Cuts a client
 * that takes them too slowly. An error before the first byte is thrown, with nothing sent; one after it is thrown too, and the
 * caller must cut the connection. Returns early when the client has left, and always ends the iterator.
 */
export async function writeBytes(
  response: ServerResponse,
  { status, bytes, length }: BytesReply,
  options: { headers: Record<string, string>; signal: AbortSignal; isHeadOnly: boolean; measureMs?: number },
): Promise<void> {
  const { headers, signal, isHeadOnly, measureMs = MEASURE_MS } = options;
  const head = { ...headers, ...(length !== undefined && { "content-length": length }) };
  if (isHeadOnly) return void response.writeHead(status, head).end();
  let taken = 0;
  let pace: NodeJS.Timeout | undefined;
  try {
    for await (const piece of bytes) {
      if (signal.aborted) return;
      if (!response.headersSent) response.writeHead(status, head);
      pace ??= watchPace(response, measureMs, () => taken);
      for (const slice of slicesOf(piece)) {
        if (!response.write(slice)) await once(response, "drain", { signal }).catch(() => undefined);
        if (signal.aborted) return;
        taken += slice.length;
      }
    }
    if (length !== undefined && taken !== length)
      throw new AppError("internal", "A stream has not the length that it was said to have.");
    if (!response.headersSent) response.writeHead(status, head);
    response.end();
    if (!response.writableFinished) await once(response, "finish", { signal }).catch(() => undefined);
  } finally {
    clearInterval(pace);
  }
}

/** Cuts a client that takes too little of what waits for it; its `close` aborts the signal of the request. */
function watchPace(response: ServerResponse, measureMs: number, taken: () => number): NodeJS.Timeout {
  let before = 0;
  return setInterval(() => {
    const isSlow = taken() - before < (LEAST_BYTES_PER_SECOND * measureMs) / 1_000;
    if (isSlow && response.writableLength > 0) response.destroy();
    before = taken();
  }, measureMs).unref();
}

/** Bytes in parts of which each is sent by itself. */
export function* slicesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += SLICE_BYTES) yield bytes.subarray(from, from + SLICE_BYTES);
}
