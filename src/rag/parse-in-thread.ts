import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { AppError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { RawSource } from "./parse/parse-source.ts";
import { unreadable } from "./parse/section.ts";
import type { ParseReply, ParseRequest } from "./parse-messages.ts";
import type { SourceType } from "./schemas.ts";
import type { ChunkText } from "./split.ts";

const MAX_THREADS = 2; // so that one slow document does not hold up the others of a worker process
const IDLE_MS = 30_000; // a thread without work for so long ends and gives its memory back
const resourceLimits = { maxOldGenerationSizeMb: 768, maxYoungGenerationSizeMb: 64, stackSizeMb: 4 };

/** A source that was read: its outline, and its chunks as the thread makes them. `chunks` can be iterated once. */
export type ReadSource = {
  title?: string;
  type: SourceType;
  /** About how many chunks there will be. */
  expected: number;
  chunks: AsyncIterable<ChunkText[]>;
};

export type ParsePool = {
  /**
   * Reads a source in a thread of its own, with limits on time and memory.
   * @throws AppError `source_unreadable`, `request_too_large`; also while the chunks are iterated.
   */
  read(source: RawSource, signal: AbortSignal): Promise<ReadSource>;
  close(): Promise<void>;
};

type Thread = { worker: Worker; idle?: NodeJS.Timeout };

/** Makes a pool of threads that start when they are needed. `timeoutMs` bounds the reading of one source. */
export function makeParsePool(options: { timeoutMs: number; logger: Logger }): ParsePool {
  const idle: Thread[] = [];
  const running = new Set<Thread>();
  const waiting: (() => void)[] = [];
  let nextId = 1;

  const acquire = async (signal: AbortSignal): Promise<Thread> => {
    while (running.size >= MAX_THREADS) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      if (signal.aborted) waiting.shift()?.(); // the turn, if it was one, passes on
      signal.throwIfAborted();
    }
    const thread = idle.pop() ?? startThread();
    clearTimeout(thread.idle);
    running.add(thread);
    return thread;
  };
  const release = (thread: Thread, isUsable: boolean) => {
    running.delete(thread);
    if (isUsable) {
      thread.worker.unref();
      thread.idle = setTimeout(() => {
        idle.splice(idle.indexOf(thread), 1);
        void thread.worker.terminate();
      }, IDLE_MS).unref();
      idle.push(thread);
    } else {
      void thread.worker.terminate();
    }
    waiting.shift()?.();
  };

  return {
    async read(source, signal) {
      const thread = await acquire(signal);
      thread.worker.ref();
      const bytes = new Uint8Array(source.bytes); // a copy that is the thread's own once it is sent
      const request: ParseRequest = { ...source, id: nextId++, bytes };
      const replies = follow(
        thread.worker,
        request,
        AbortSignal.any([signal, AbortSignal.timeout(options.timeoutMs)]),
        {
          end: (isUsable) => release(thread, isUsable),
          fail: (error) => explain(error, signal, options),
        },
      );
      const first = await replies.next();
      if (first.done || first.value.kind !== "outline")
        throw new TypeError("a parsing thread began without an outline");
      const { title, type, passages } = first.value;
      return { type, expected: passages, chunks: chunksOf(replies), ...(title ? { title } : {}) };
    },
    async close() {
      await Promise.all([...idle.splice(0), ...running].map(({ worker }) => worker.terminate()));
    },
  };
}

function startThread(): Thread {
  const worker = new Worker(new URL("./parse-worker.ts", import.meta.url), { resourceLimits });
  worker.on("error", () => undefined); // told to whoever waits for it; without a listener it would end the process
  return { worker };
}

/** The replies to one request, until its end. The thread is given back, or ended where its state is not known. */
async function* follow(
  worker: Worker,
  request: ParseRequest,
  signal: AbortSignal,
  host: { end(isUsable: boolean): void; fail(error: unknown): Error },
): AsyncGenerator<ParseReply> {
  const replies: ParseReply[] = [];
  let wake = Promise.withResolvers<void>();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined); // awaited below, unless the end comes first
  const onMessage = (reply: ParseReply) => {
    if (reply.id === request.id) replies.push(reply);
    wake.resolve();
  };
  const stop = new AbortController();
  const failed = (error: unknown) => failure.reject(error);
  once(worker, "exit", { signal: stop.signal }).then(
    () => failed(new Error("the thread ended")),
    () => undefined,
  );
  worker.once("error", failed);
  worker.on("message", onMessage);
  signal.addEventListener("abort", () => failed(signal.reason), { signal: stop.signal });
  let isUsable = false;
  try {
    signal.throwIfAborted();
    worker.postMessage(request, [request.bytes.buffer as ArrayBuffer]); // it was allocated as one just before
    for (;;) {
      const reply = replies.shift();
      if (!reply) {
        await Promise.race([wake.promise, failure.promise]);
        wake = Promise.withResolvers<void>();
        continue;
      }
      isUsable = reply.kind === "end" || reply.kind === "error";
      if (reply.kind === "error") throw new AppError(reply.code, reply.message, { cause: reply.cause });
      if (reply.kind === "end") return;
      yield reply;
    }
  } catch (error) {
    throw host.fail(error);
  } finally {
    stop.abort();
    worker.off("message", onMessage);
    worker.off("error", failed);
    host.end(isUsable);
  }
}

async function* chunksOf(replies: AsyncGenerator<ParseReply>): AsyncGenerator<ChunkText[]> {
  for await (const reply of replies) if (reply.kind === "chunks") yield reply.chunks;
}

/** What the end of a thread means for its document. */
function explain(error: unknown, signal: AbortSignal, options: { timeoutMs: number; logger: Logger }): Error {
  if (signal.aborted) return signal.reason instanceof Error ? signal.reason : new Error("aborted");
  if (error instanceof AppError) return error;
  options.logger.warn({ err: error }, "a parsing thread was lost with its document");
  const isTimeout = error instanceof Error && error.name === "TimeoutError";
  return unreadable(
    isTimeout ? `Reading it took longer than ${options.timeoutMs} ms.` : "Reading it needs more memory than allowed.",
    error,
  );
}
