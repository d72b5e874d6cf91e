import type { IncomingHttpHeaders } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { AppError } from "../../errors.ts";
import { fromAbort, fromConnectionError, isHeadersTimeout } from "./transport-errors.ts";

/** Above this, a JSON response is refused: no model writes so much, and it must fit into memory many times over. */
const MAX_RESPONSE_BYTES = 64 << 20;
/** A stream is paused while the reader is behind by more than this. */
const MAX_UNREAD_BYTES = 1 << 20;

export type TransportTimeouts = {
  connectMs: number;
  firstByteMs: number;
  idleMs: number;
  /** For a call whose answer comes only when all of it is written; without it `firstByteMs`. */
  answerMs?: number;
};
/** Where a server is, and how it is reached. */
export type Connection = {
  baseUrl: string;
  timeouts: TransportTimeouts;
  /** Connections to its origin that have been opened; without it, a pool of its own. */
  dispatcher?: Pool | undefined;
};
export type TransportCall = {
  path: string;
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
  /** The first byte comes when all the work is done. */
  isWhole?: boolean;
  /**
   * Called when a call fails while the server has work with it, or has answered well so far: `begun` is what `send` had
   * read by then. `isGivenUp`: it was us who ended it, because the caller left or a time limit passed.
   */
  onBroken?: ((begun: string, isGivenUp: boolean) => void) | undefined;
};
export type TransportResponse = { status: number; headers: IncomingHttpHeaders; body: string };
export type TransportStream = {
  status: number;
  headers: IncomingHttpHeaders;
  /** Leaving the loop over them early aborts the request. */
  chunks: AsyncIterable<Buffer>;
  /** Says that what is still to come does not matter: leaving the loop then keeps the connection for the next call. */
  finish(): void;
};

/**
 * Pooled keep-alive POST requests to the server at `baseUrl`. Errors are AppErrors `provider_failed`, `provider_timeout`,
 * `client_closed`. It sits directly on undici's dispatcher: no stream object and no promise a chunk more than
 * the reader awaits, since this is the hot path of every model call.
 */
export function makeTransport({ baseUrl, timeouts, dispatcher }: Connection) {
  const { origin, pathname } = new URL(baseUrl);
  const root = pathname.replace(/\/+$/, "");
  const pool =
    dispatcher ??
    new Pool(origin, {
      connect: { timeout: timeouts.connectMs },
      bodyTimeout: 0, // watched here: the first chunk has another limit than the silence between two
      keepAliveTimeout: 30_000,
      pipelining: 1,
    });
  const firstByteOf = (call: TransportCall) =>
    call.isWhole === true ? (timeouts.answerMs ?? timeouts.firstByteMs) : timeouts.firstByteMs;
  const dispatch = (call: TransportCall, exchange: Exchange) => {
    if (call.signal.aborted) return exchange.fail(fromAbort(call.signal));
    const onAbort = () => exchange.fail(fromAbort(call.signal));
    call.signal.addEventListener("abort", onAbort, { once: true });
    exchange.onSettled = () => call.signal.removeEventListener("abort", onAbort);
    const { headers, body } = call;
    const headersTimeout = firstByteOf(call);
    pool.dispatch({ path: root + call.path, method: "POST", headers, body, headersTimeout }, exchange.handler);
  };
  return {
    /** Sends and reads the whole response, whatever its status. */
    send: (call: TransportCall) =>
      new Promise<TransportResponse>((resolve, reject) => {
        const exchange = makeExchange(firstByteOf(call), timeouts.idleMs);
        const parts: Buffer[] = [];
        let bytes = 0;
        exchange.onChunk = (chunk) => {
          bytes += chunk.length;
          if (bytes > MAX_RESPONSE_BYTES)
            exchange.fail(new AppError("provider_failed", "The provider's answer is too large."));
          else parts.push(chunk);
        };
        exchange.onEnd = () => {
          const body =
            parts.length === 1 && parts[0] ? parts[0].toString("utf8") : Buffer.concat(parts).toString("utf8");
          resolve({ status: exchange.status, headers: exchange.headers, body });
        };
        exchange.onBroken = (isGivenUp) => call.onBroken?.(Buffer.concat(parts).toString("utf8"), isGivenUp);
        exchange.onError = reject;
        dispatch(call, exchange);
      }),
    /** Sends, and resolves when the headers are there. */
    open: (call: TransportCall) =>
      new Promise<TransportStream>((resolve, reject) => {
        const exchange = makeExchange(firstByteOf(call), timeouts.idleMs);
        exchange.onBroken = (isGivenUp) => call.onBroken?.("", isGivenUp);
        exchange.onError = reject;
        exchange.onHeaders = () => {
          const { chunks, finish } = readChunks(exchange);
          resolve({ status: exchange.status, headers: exchange.headers, chunks, finish });
        };
        dispatch(call, exchange);
      }),
    close: () => pool.destroy(),
  };
}

/** One request under way. The callbacks are set by its reader; `onSettled` runs once, at the end or at the failure. */
type Exchange = {
  status: number;
  headers: IncomingHttpHeaders;
  handler: Dispatcher.DispatchHandler;
  onHeaders: () => void;
  onChunk: (chunk: Buffer) => void;
  onEnd: () => void;
  onError: (error: unknown) => void;
  /** Before `onError`, when the server has work with the request or has answered well so far. */
  onBroken: (isGivenUp: boolean) => void;
  onSettled: () => void;
  pause(): void;
  resume(): void;
  /** Aborts the request; the reader gets `error`. */
  fail(error: Error): void;
};

const nothing = () => undefined;
const deaf = {
  onHeaders: nothing,
  onChunk: nothing,
  onEnd: nothing,
  onError: nothing,
  onBroken: nothing,
  onSettled: nothing,
};

function makeExchange(firstByteMs: number, idleMs: number): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let isSettled = false;
  let hasData = false;
  let watch: NodeJS.Timeout | undefined;
  const settle = () => {
    isSettled = true;
    clearTimeout(watch);
    exchange.onSettled();
  };
  const watchFor = (ms: number, phase: string) => {
    clearTimeout(watch);
    const toError = () =>
      new AppError("provider_timeout", "The provider fell silent.", { details: { phase }, reason: "silent" });
    const timeOut = () => exchange.fail(toError());
    watch = setTimeout(timeOut, ms);
  };
  const exchange: Exchange = {
    status: 0,
    headers: {},
    ...deaf,
    pause: () => {
      clearTimeout(watch); // it is our reader that is slow now, not the provider
      controller?.pause();
    },
    resume: () => {
      if (!isSettled) watchFor(idleMs, "idle");
      controller?.resume();
    },
    fail: (error) => {
      if (isSettled) return;
      settle();
      controller?.abort(error);
      const isAtWork = controller !== undefined && (exchange.status === 0 || isGood(exchange.status));
      if (isAtWork) exchange.onBroken(true);
      exchange.onError(error);
    },
    handler: {
      onRequestStart: (started) => {
        controller = started;
        if (isSettled) started.abort(new Error("The caller is gone."));
      },
      onResponseStart: (_controller, status, headers) => {
        if (status < 200 || isSettled) return;
        exchange.status = status;
        exchange.headers = headers;
        watchFor(firstByteMs, "first_byte");
        exchange.onHeaders();
      },
      onResponseData: (_controller, chunk) => {
        if (isSettled) return;
        if (hasData) watch?.refresh();
        else watchFor(idleMs, "idle");
        hasData = true;
        exchange.onChunk(chunk);
      },
      onResponseEnd: () => {
        if (isSettled) return;
        settle();
        exchange.onEnd();
      },
      onResponseError: (_controller, error) => {
        if (isSettled) return;
        settle();
        const isSilence = isHeadersTimeout(error);
        if (isSilence || isGood(exchange.status)) exchange.onBroken(isSilence);
        exchange.onError(fromConnectionError(error, exchange.status > 0));
      },
    },
  };
  return exchange;
}

const isGood = (status: number) => status >= 200 && status <= 299;

/** The chunks of a response in order of arrival; what arrived while the reader was busy comes as one chunk. */
function readChunks(exchange: Exchange): Pick<TransportStream, "chunks" | "finish"> {
  let unread: Buffer[] = [];
  let unreadBytes = 0;
  let isEnded = false;
  let failure: unknown;
  let wake: () => void = () => undefined;
  exchange.onChunk = (chunk) => {
    if (isEnded) return;
    unread.push(chunk);
    unreadBytes += chunk.length;
    if (unreadBytes > MAX_UNREAD_BYTES) exchange.pause();
    wake();
  };
  exchange.onEnd = () => {
    isEnded = true;
    wake();
  };
  exchange.onError = (error) => {
    failure = error;
    wake();
  };
  const finish = () => {
    isEnded = true;
  };
  async function* read(): AsyncGenerator<Buffer> {
    try {
      while (true) {
        if (unread.length > 0) {
          const ready = unread;
          const wasPaused = unreadBytes > MAX_UNREAD_BYTES;
          unread = [];
          unreadBytes = 0;
          if (wasPaused) exchange.resume(); // may hand over chunks before it returns
          yield ready.length === 1 && ready[0] ? ready[0] : Buffer.concat(ready);
        } else if (failure !== undefined) throw failure;
        else if (isEnded) return;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      if (!isEnded) exchange.fail(new Error("The reader left.")); // reported to the reader, which is gone
    }
  }
  return { chunks: read(), finish };
}
