import { percentile } from "../measure.ts";
import { makeEventQueue } from "./event-queue.ts";
import { type Machine, openMachine, type Visit } from "./machine.ts";
import type { Clock } from "./processors.ts";
import { makeRandom, type Random } from "./random.ts";

/** What one unit of work does. */
export type Route = {
  /** Until its caller has the response. */
  accept: readonly Visit[];
  /** After that, with a place of `slots`, as a job of a worker. */
  run?: { slots: string; visits: readonly Visit[]; priority?: (submitted: number) => number };
  /** After the response, with nobody waiting, as records that are written behind. */
  behind?: readonly Visit[];
};

export type Load =
  /** Poisson arrivals at a rate that may change with time, `mostPerSecond` at most; whether or not earlier ones have ended. With `tickMs` those of a tick begin together at its end. */
  | { perSecond: (seconds: number) => number; mostPerSecond: number; tickMs?: number }
  /** Callers that each have one unit under way, and begin the next when it is accepted; `total` units, or without end. */
  | { callers: number; total?: number };

export type Simulated = {
  /** Units that were accepted, and ended, a second. */
  acceptedPerSecond: number;
  endedPerSecond: number;
  /** From arrival to the response, and from the response to the end of the job; in ms. */
  accept: { mean: number; p50: number; p99: number };
  run: { mean: number; p50: number; p99: number };
  /** From the response until the job has a place, in ms. */
  place: { mean: number; p50: number; p99: number };
  /** Share of the time that the threads of a station compute, on average. */
  utilisation: Record<string, number>;
  /** Jobs that waited for a place at the end. */
  waiting: number;
  /** When the last unit ended, in seconds. */
  lastEndS: number;
};

/**
 * Runs units of work through a machine for some seconds; what happens in the first `warmUp` of them is not counted. The same seed
 * gives the same result.
 */
export function simulate(options: {
  machine: Machine;
  route: Route;
  load: Load;
  seconds: number;
  warmUp?: number;
  seed: number;
}): Simulated {
  const { machine, route, load, seconds, warmUp = 0, seed } = options;
  const events = makeEventQueue<() => void>();
  let nowMs = 0;
  const clock = { now: () => nowMs, after: (ms: number, event: () => void) => events.add(nowMs + ms, event) };
  const random = makeRandom(seed);
  const places = openMachine(machine, clock, random);
  const watch = makeWatch(warmUp * 1_000);

  let submitted = 0;
  const begin = (onAccepted: () => void) => {
    const arrivedAt = nowMs;
    const affinity = Math.floor(random.uniform() * 1e6);
    places.follow(route.accept, affinity, () => {
      const acceptedAt = nowMs;
      watch.accepted(arrivedAt, nowMs);
      onAccepted();
      if (route.behind) places.follow(route.behind, affinity, () => undefined);
      if (!route.run) return;
      const { slots, visits, priority = (n) => n } = route.run;
      places.enter(slots, priority(submitted++), (holder, leave) => {
        watch.placed(acceptedAt, nowMs);
        places.follow(visits, holder, () => {
          watch.ended(acceptedAt, nowMs);
          leave();
        });
      });
    });
  };
  arrive(load, { clock, random, begin });
  for (let next = events.take(); next && next.at <= seconds * 1_000; next = events.take()) {
    nowMs = next.at;
    next.event();
  }
  const { busyMs, waiting } = places.usage();
  const threads = Object.fromEntries(machine.stations.map(({ name, threads: count }) => [name, count]));
  const utilisation = Object.entries(busyMs).map(([name, ms]) => [name, ms / (seconds * 1_000 * (threads[name] ?? 1))]);
  return { ...watch.result(seconds - warmUp), utilisation: Object.fromEntries(utilisation), waiting };
}

/** Begins units of work as a load says. */
function arrive(
  load: Load,
  { clock, random, begin }: { clock: Clock; random: Random; begin: (on: () => void) => void },
) {
  if ("callers" in load) {
    let left = load.total ?? Number.POSITIVE_INFINITY;
    const again = () => {
      if (left-- > 0) begin(() => clock.after(0, again));
    };
    for (let n = 0; n < load.callers; n += 1) again();
    return;
  }
  // Arrivals at the highest rate, of which as many are left out as the rate is below it (Lewis and Shedler's thinning).
  const next = () => {
    clock.after(random.exponential(1_000 / load.mostPerSecond), () => {
      if (random.uniform() * load.mostPerSecond < load.perSecond(clock.now() / 1_000))
        clock.after(toTick(clock.now(), load.tickMs), () => begin(() => undefined));
      next();
    });
  };
  next();
}

const toTick = (nowMs: number, tickMs = 0) => (tickMs > 0 ? tickMs - (nowMs % tickMs) : 0);

/** Counts and times of what happened after the warm-up. */
function makeWatch(fromMs: number) {
  const times = { accept: [] as number[], run: [] as number[], place: [] as number[] };
  let lastMs = 0;
  const note = (which: keyof typeof times) => (sinceMs: number, nowMs: number) => {
    lastMs = nowMs;
    if (nowMs >= fromMs) times[which].push(nowMs - sinceMs);
  };
  const summary = (list: readonly number[]) => ({
    mean: list.reduce((sum, ms) => sum + ms, 0) / list.length,
    p50: percentile(list, 0.5),
    p99: percentile(list, 0.99),
  });
  return {
    accepted: note("accept"),
    placed: note("place"),
    ended: note("run"),
    result: (seconds: number) => ({
      acceptedPerSecond: times.accept.length / seconds,
      endedPerSecond: times.run.length / seconds,
      accept: summary(times.accept),
      run: summary(times.run),
      place: summary(times.place),
      lastEndS: lastMs / 1_000,
    }),
  };
}
