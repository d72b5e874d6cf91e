import { fromAbort } from "../resilience/transport-errors.ts";

/** A call that several callers wait for: what it has said so far, and whether it has ended. */
type Flight<T> = {
  said: T[];
  readers: number;
  isEnded: boolean;
  failure?: unknown;
  controller: AbortController;
  wake: Set<() => void>;
};

/** One call for all who ask the same at the same time. */
export type SingleFlight<T> = {
  /** Whether somebody asks for this already. */
  has(key: string): boolean;
  /**
   * What the call of this key says, from its beginning; `begin` starts it when there is none. A reader who leaves, or whose
   * signal aborts, does not end it for the others; when the last one leaves it is aborted.
   */
  join(key: string, begin: (signal: AbortSignal) => AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T>;
};

export function makeSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>();

  const run = async (key: string, flight: Flight<T>, source: AsyncIterable<T>) => {
    const wakeAll = () => {
      for (const wake of flight.wake) wake();
      flight.wake.clear();
    };
    try {
      for await (const item of source) {
        flight.said.push(item);
        wakeAll();
      }
    } catch (error) {
      flight.failure = error;
    }
    flight.isEnded = true;
    if (flights.get(key) === flight) flights.delete(key);
    wakeAll();
  };
  const start = (key: string, begin: (signal: AbortSignal) => AsyncIterable<T>): Flight<T> => {
    const controller = new AbortController();
    const flight: Flight<T> = { said: [], readers: 0, isEnded: false, controller, wake: new Set() };
    flights.set(key, flight);
    void run(key, flight, begin(controller.signal)); // it keeps its failure for the readers
    return flight;
  };
  return {
    has: (key) => flights.has(key),
    async *join(key, begin, signal) {
      const flight = flights.get(key) ?? start(key, begin);
      flight.readers += 1;
      try {
        for (let next = 0; ; next += 1) {
          while (next >= flight.said.length && !flight.isEnded && !signal.aborted) await untilWoken(flight, signal);
          if (signal.aborted) throw fromAbort(signal);
          const item = flight.said[next];
          if (next >= flight.said.length || item === undefined) break;
          yield item;
        }
        if (flight.failure !== undefined) throw flight.failure;
      } finally {
        flight.readers -= 1;
        if (flight.readers === 0 && !flight.isEnded) {
          if (flights.get(key) === flight) flights.delete(key);
          flight.controller.abort();
        }
      }
    },
  };
}

function untilWoken<T>(flight: Flight<T>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      signal.removeEventListener("abort", wake);
      flight.wake.delete(wake);
      resolve();
    };
    flight.wake.add(wake);
    signal.addEventListener("abort", wake, { once: true });
  });
}
