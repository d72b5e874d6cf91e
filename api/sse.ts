import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { HandlerInput, SseMessage, StreamReply } from "./route.ts";

/** Between two heartbeats of a silent stream; proxies cut connections that are idle for a minute. */
const HEARTBEAT_MS = 15_000;
/** A client that reads nothing for this time is cut, so that it does not hold memory for ever. */
const STALLED_CLIENT_MS = 60_000;

/** A batch of so many characters, or events, comes from a model that says more at once than any reader follows, or to one who does not read. */
const MUCH_AT_ONCE = 16 << 10;
const MANY_AT_ONCE = 64;
/** Longest time in ms that a stream with much to say holds the turn of its tenant, while it waits for its next batch. */
const TURN_MS = 20;

const lineBreak = /\r\n|\r|\n/g;

/** One event in the text form of https://html.spec.whatwg.org/multipage/server-sent-events.html. */
export function formatSseMessage({ id, event, data }: SseMessage): string {
  const text = typeof data === "string" ? data.replace(lineBreak, "\ndata: ") : JSON.stringify(data);
  const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
  return `${head}data: ${text}\n\n`;
}

/**
 * Writes a stream reply to `response`, with `headers` besides its own, and ends it. One write a batch; waits while the
 * client does not read, and reads on in the turn of its tenant where a batch was large; sends a comment, or what the reply says, as heartbeat when nothing comes. An error before the head was sent is thrown;
 * one after it becomes a last event, made by `onError`. Returns early when the client has left, and always ends the iterator.
 */
export async function writeEventStream(
  response: ServerResponse,
  reply: StreamReply,
  options: {
    headers: () => Record<string, string>;
    signal: AbortSignal;
    onError: (error: unknown) => SseMessage;
    isHeadOnly: boolean;
    /** Waits for the turn of the tenant, as reads of much do. */
    inTurn: HandlerInput["inTurn"];
  },
): Promise<void> {
  const iterator = reply.events[Symbol.asyncIterator]();
  const { headers, signal, inTurn } = options;
  const silence = reply.heartbeat ? formatSseMessage(reply.heartbeat) : ": heartbeat\n\n";
  const read = async () => {
    const next = await iterator.next();
    return next.done ? undefined : toBatch(next.value);
  };
  const readInTurn = async () => {
    let coming: ReturnType<typeof read> | undefined;
    await inTurn(async () => {
      coming = read();
      coming.catch(() => undefined); // it is waited for below, unless the client leaves in the meantime
      await Promise.race([coming, delay(TURN_MS)]);
    });
    return coming;
  };
  let heartbeat: NodeJS.Timeout | undefined;
  try {
    if (reply.isEager || options.isHeadOnly) sendHead(response, headers());
    if (options.isHeadOnly) return;
    let batch = await read();
    if (!response.headersSent) sendHead(response, headers(), { isHeld: batch !== undefined && batch.bytes.length > 0 });
    heartbeat = setInterval(() => !signal.aborted && response.write(silence), HEARTBEAT_MS).unref();
    while (batch !== undefined && !signal.aborted) {
      const { bytes, isMuch } = batch;
      if (bytes.length > 0 && !response.write(bytes)) await drained(response, signal);
      heartbeat.refresh();
      batch = await (isMuch ? readInTurn() : read());
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

function toBatch(events: readonly SseMessage[] | Buffer): { bytes: string | Buffer; isMuch: boolean } {
  const bytes = Buffer.isBuffer(events) ? events : events.map(formatSseMessage).join("");
  const isMany = !Buffer.isBuffer(events) && events.length > MANY_AT_ONCE;
  return { bytes, isMuch: isMany || bytes.length > MUCH_AT_ONCE };
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

/** Resolves when the client has read all that was written, or has left; cuts a client that does not read. */
async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  const stalled = setTimeout(() => response.destroy(), STALLED_CLIENT_MS).unref(); // its `close` aborts the signal
  await once(response, "drain", { signal }).catch(() => undefined);
  clearTimeout(stalled);
}
