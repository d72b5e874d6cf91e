import type { ServerResponse } from "node:http";
import type { SseMessage, StreamReply } from "./route.ts";

/** Between two heartbeats of a silent stream; proxies cut connections that are idle for a minute. */
const HEARTBEAT_MS = 15_000;
/** A client that takes nothing for so long is cut, so that it does not hold memory for ever. */
const STALLED_CLIENT_MS = 60_000;

const lineBreak = /\r\n|\r|\n/g;

/** One event in the text form of https://html.spec.whatwg.org/multipage/server-sent-events.html. */
export function formatSseMessage({ id, event, data }: SseMessage): string {
  const text = typeof data === "string" ? data.replace(lineBreak, "\ndata: ") : JSON.stringify(data);
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${text}\n\n`;
}

/**
 * Writes a stream reply to `response`, with `headers` besides its own, and ends it. One write a batch; waits while the
 * client does not take more; sends a comment as heartbeat when nothing comes. An error before the head was sent is thrown;
 * one after it becomes a last event, made by `onError`. Returns early when the client is gone, and ends the iterator always.
 */
export async function writeEventStream(
  response: ServerResponse,
  reply: StreamReply,
  options: {
    headers: Record<string, string>;
    signal: AbortSignal;
    onError: (error: unknown) => SseMessage;
    isHeadOnly: boolean;
  },
): Promise<void> {
  const iterator = reply.events[Symbol.asyncIterator]();
  const { headers, signal } = options;
  let heartbeat: NodeJS.Timeout | undefined;
  try {
    if (reply.isEager || options.isHeadOnly) sendHead(response, headers);
    if (options.isHeadOnly) return;
    let next = await iterator.next();
    const hasSaid = !next.done && next.value.length > 0;
    if (!response.headersSent) sendHead(response, headers, { isHeld: hasSaid });
    heartbeat = setInterval(() => !signal.aborted && response.write(": heartbeat\n\n"), HEARTBEAT_MS).unref();
    while (!next.done && !signal.aborted) {
      if (next.value.length > 0 && !response.write(next.value.map(formatSseMessage).join(""))) {
        await drained(response, signal);
      }
      heartbeat.refresh();
      next = await iterator.next();
    }
  } catch (error) {
    if (!response.headersSent) throw error;
    if (!signal.aborted) response.write(formatSseMessage(options.onError(error)));
  } finally {
    clearInterval(heartbeat);
    await iterator.return?.();
    if (response.headersSent) response.end();
  }
}

/** Sends the head of a stream; one that is held goes out with the first event, in one packet. */
function sendHead(response: ServerResponse, headers: Record<string, string>, { isHeld } = { isHeld: false }): void {
  response.writeHead(200, {
    ...headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  if (!isHeld) response.flushHeaders();
}

/** Resolves when the client took what was written, or is gone; cuts a client that takes nothing. */
function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(stalled);
      response.off("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const stalled = setTimeout(() => response.destroy(), STALLED_CLIENT_MS).unref();
    response.once("drain", done);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}
