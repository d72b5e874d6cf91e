import type { IncomingHttpHeaders } from "node:http";
import { type Dispatcher, Pool } from "undici";
import { AppError } from "../../lib/errors.ts";
import { toDepthHeader } from "../../net/call-scope.ts";
import { type EnterLarge, takeTurn } from "./large-answers.ts";
import { fromAbort, fromConnectionError, isHeadersTimeout } from "./transport-errors.ts";

/** Above this, a JSON response is refused: no model writes so much, and it must fit into memory many times over. */
const MAX_RESPONSE_BYTES = 64 << 20;
/** An error body is read up to this, in bytes. */
export const MAX_ERROR_BYTES = 64 << 10;
/** A larger answer is read in its turn, in bytes, where a connection has turns. */
const LARGE_BYTES = 256 << 10;
/** A stream is paused while the reader is behind by more than this, which is then read at once, in bytes. */
const MAX_UNREAD_BYTES = 128 << 10;

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
  /** The turns in which large answers are read, where they have some. */
  enterLarge?: EnterLarge | undefined;
};
export type TransportCall = {
  path: string;
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
  /** Above this an answer is refused, in bytes; default: 64 MiB. */
  maxBytes?: number | undefined;
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

const withDepth = (call: TransportCall) => ({ ...call, headers: { ...call.headers, ...toDepthHeader() } });

/**
 * Pooled keep-alive POST requests to the server at `baseUrl`. Errors are AppErrors `provider_failed`, `provider_timeout`,
 * `client_closed`. It sits directly on undici's dispatcher: no stream object and no promise a chunk more than
 * the reader awaits, since this is the hot path of every model call.
 */
export function makeTransport({ baseUrl, timeouts, dispatcher, enterLarge }: Connection) {
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
  const dispatch = (call: TransportCall, reader: Reader) => {
    const { signal, headers, body } = withDepth(call);
    const headersTimeout = firstByteOf(call);
    const exchange = makeExchange(signal, { firstByteMs: headersTimeout, idleMs: timeouts.idleMs }, reader);
    if (signal.aborted) return exchange.fail(fromAbort(signal));
    pool.dispatch({ path: root + call.path, method: "POST", headers, body, headersTimeout }, exchange.handler);
  };
  return {
    /** Sends and reads the whole response, whatever its status. */
    send: (call: TransportCall) =>
      new Promise<TransportResponse>((resolve, reject) => {
        const parts: Buffer[] = [];
        let bytes = 0;
        let turn: ReturnType<typeof takeTurn> | undefined;
        const toText = () =>
          parts.length === 1 && parts[0] ? parts[0].toString("utf8") : Buffer.concat(parts).toString("utf8");
        const end = ({ status, headers }: Exchange) => {
          resolve({ status, headers, body: toText() });
          turn?.end();
        };
        dispatch(call, {
          onHeaders: () => undefined,
          onChunk: (chunk, exchange) => {
            bytes += chunk.length;
            const isAnswer = isGood(exchange.status);
            if (isAnswer && bytes > (call.maxBytes ?? MAX_RESPONSE_BYTES))
              return exchange.fail(new AppError("provider_failed", "The provider's answer is too large."));
            parts.push(chunk);
            if (isAnswer && enterLarge && bytes > LARGE_BYTES) turn ??= takeTurn(exchange, call.signal, enterLarge);
            if (isAnswer || bytes <= MAX_ERROR_BYTES) return;
            parts.splice(0, parts.length, Buffer.concat(parts).subarray(0, MAX_ERROR_BYTES));
            end(exchange); // what follows of an error is not read
            exchange.fail(new Error("The error is too long."));
          },
          onEnd: end,
          onBroken: (isGivenUp) => call.onBroken?.(toText(), isGivenUp),
          onError: (error) => {
            reject(error); // does nothing once the start of an error was enough
            turn?.end();
          },
        });
      }),
    /** Sends, and resolves when the headers are there. */
    open: (call: TransportCall) =>
      new Promise<TransportStream>((resolve, reject) => {
        const { read, add, fail, finish } = makeChunks();
        dispatch(call, {
          onHeaders: (exchange) => {
            const { status, headers } = exchange;
            resolve({ status, headers, chunks: read(exchange), finish });
          },
          onChunk: add,
          onEnd: finish,
          onBroken: (isGivenUp) => call.onBroken?.("", isGivenUp),
          onError: (error) => {
            reject(error); // does nothing once the headers were there
            fail(error);
          },
        });
      }),
    close: () => pool.destroy(),
  };
}

/**
 * What is done with a response as it comes. It is made as a literal, before the exchange: V8 allocates a function literal that is
 * assigned to a property among the old objects, and what a call has would outlive the call until all garbage is collected
 * (`CheckAssigningFunctionLiteralToProperty` in V8's parser).
 */
type Reader = {
  onHeaders(exchange: Exchange): void;
  onChunk(chunk: Buffer, exchange: Exchange): void;
  onEnd(exchange: Exchange): void;
  /** Before `onError`, when the server has work with the request or has answered well so far. */
  onBroken(isGivenUp: boolean): void;
  onError(error: unknown): void;
};

/** One request under way. */
type Exchange = {
  status: number;
  headers: IncomingHttpHeaders;
  handler: Dispatcher.DispatchHandler;
  pause(): void;
  resume(): void;
  /** Aborts the request; the reader gets `error`. */
  fail(error: Error): void;
};

type Limits = Pick<TransportTimeouts, "firstByteMs" | "idleMs">;

/** An exchange that ends with `signal`. One of the reader's `onEnd` and `onError` is called, once. */
function makeExchange(signal: AbortSignal, { firstByteMs, idleMs }: Limits, reader: Reader): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let isSettled = false;
  let hasData = false;
  let watch: NodeJS.Timeout | undefined;
  const onAbort = () => exchange.fail(fromAbort(signal));
  const settle = () => {
    isSettled = true;
    clearTimeout(watch);
    signal.removeEventListener("abort", onAbort);
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
      if (isAtWork) reader.onBroken(true);
      reader.onError(error);
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
        reader.onHeaders(exchange);
      },
      onResponseData: (_controller, chunk) => {
        if (isSettled) return;
        if (hasData) watch?.refresh();
        else watchFor(idleMs, "idle");
        hasData = true;
        reader.onChunk(chunk, exchange);
      },
      onResponseEnd: () => {
        if (isSettled) return;
        settle();
        reader.onEnd(exchange);
      },
      onResponseError: (_controller, error) => {
        if (isSettled) return;
        settle();
        const isSilence = isHeadersTimeout(error);
        if (isSilence || isGood(exchange.status)) reader.onBroken(isSilence);
        reader.onError(fromConnectionError(error, exchange.status > 0));
      },
    },
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return exchange;
}

const isGood = (status: number) => status >= 200 && status <= 299;

/** The chunks of a response in order of arrival; what arrived while the reader was busy comes as one chunk. */
function makeChunks() {
  let unread: Buffer[] = [];
  let unreadBytes = 0;
  let isEnded = false;
  let failure: unknown;
  let wake: () => void = () => undefined;
  async function* read({ fail, resume }: Exchange): AsyncGenerator<Buffer> {
    try {
      while (true) {
        if (unread.length > 0) {
          const ready = unread;
          const wasPaused = unreadBytes > MAX_UNREAD_BYTES;
          unread = [];
          unreadBytes = 0;
          if (wasPaused) resume(); // may hand over chunks before it returns
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
      if (!isEnded) fail(new Error("The reader left.")); // reported to the reader, which is gone
    }
  }
  return {
    read,
    add: (chunk: Buffer, { pause }: Exchange): void => {
      if (isEnded) return;
      unread.push(chunk);
      unreadBytes += chunk.length;
      if (unreadBytes > MAX_UNREAD_BYTES) pause();
      wake();
    },
    fail: (error: unknown): void => {
      failure = error;
      wake();
    },
    finish: (): void => {
      isEnded = true;
      wake();
    },
  };
}
