import { fromAbort } from "../resilience/transport-errors.ts";

/** A call that several callers share: its parts so far, and whether it has ended. `changed` resolves at the next change. */
type SharedCall<T> = {
  said: T[];
  readers: number;
  isEnded: boolean;
  failure?: unknown;
  controller: AbortController;
  changed: PromiseWithResolvers<void>;
};

type Begin<T> = (signal: AbortSignal) => AsyncIterable<T>;

/** Coalesces identical calls that are made at the same time. */
export function makeSingleFlight<T>() {
  const calls = new Map<string, SharedCall<T>>();

  const run = async (key: string, call: SharedCall<T>, source: AsyncIterable<T>) => {
    try {
      for await (const item of source) {
        call.said.push(item);
        wakeReaders(call);
      }
    } catch (error) {
      call.failure = error;
    }
    call.isEnded = true;
    if (calls.get(key) === call) calls.delete(key);
    wakeReaders(call);
  };
  const start = (key: string, begin: Begin<T>): SharedCall<T> => {
    const controller = new AbortController();
    const call = { said: [], readers: 0, isEnded: false, controller, changed: Promise.withResolvers<void>() };
    calls.set(key, call);
    void run(key, call, begin(controller.signal)); // the readers receive its failure
    return call;
  };
  return {
    /** Whether a call with this key is under way. */
    has: (key: string) => calls.has(key),
    /**
     * Yields all parts of the call with this key; `begin` starts the call if there is none. A reader who leaves, or whose
     * signal aborts, does not end the call for others. When the last reader leaves, the call is aborted.
     */
    async *join(key: string, begin: Begin<T>, signal: AbortSignal): AsyncGenerator<T> {
      const call = calls.get(key) ?? start(key, begin);
      const onAbort = () => wakeReaders(call);
      signal.addEventListener("abort", onAbort, { once: true });
      call.readers += 1;
      try {
        for (let next = 0; ; next += 1) {
          while (next >= call.said.length && !call.isEnded && !signal.aborted) await call.changed.promise;
          if (signal.aborted) throw fromAbort(signal);
          const item = call.said[next];
          if (next >= call.said.length || item === undefined) break;
          yield item;
        }
        if (call.failure !== undefined) throw call.failure;
      } finally {
        signal.removeEventListener("abort", onAbort);
        call.readers -= 1;
        if (call.readers === 0 && !call.isEnded) {
          if (calls.get(key) === call) calls.delete(key);
          call.controller.abort();
        }
      }
    },
  };
}

/** Wakes every reader to look for new parts, the end, or its own signal. */
function wakeReaders<T>(call: SharedCall<T>): void {
  const { resolve } = call.changed;
  call.changed = Promise.withResolvers();
  resolve();
}
