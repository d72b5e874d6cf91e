import { makePool } from "./pool.ts";
import { type Clock, type Cores, makeCores, makeThread } from "./processors.ts";
import type { Random } from "./random.ts";

/** One stop of a unit of work: so much computing of a station's thread, or a wait that takes nobody's time. */
export type Visit = { station: string; ms: number } | { waitMs: number };

/** A kind of process. Each of its threads takes the work that is sent to it in order. */
export type Station = {
  name: string;
  threads: number;
  /** The group of cores that it shares; with none, each thread has a core of its own. */
  cores?: string;
  /** What a thread that has slept needs more, in ms, and how long a sleep has that whole price (any, when not given). */
  wakeMs?: number;
  deepSleepMs?: number;
  /** Pauses of garbage collection: after how much computing, how long, in ms, and how much that varies (1 when not given). */
  pause?: { everyMs: number; ms: number; variation?: number };
  /** Squared coefficient of variation of what a visit takes; 1 (exponential) when not given. */
  variation?: number;
};

export type Machine = {
  stations: readonly Station[];
  cores?: Readonly<Record<string, number>>;
  /** Places of jobs: of each thread of a station. */
  slots?: Readonly<Record<string, { station: string; each: number }>>;
};

/** The threads, cores and places of a machine. */
export function openMachine({ stations, cores = {}, slots = {} }: Machine, clock: Clock, random: Random) {
  const groups = new Map(Object.entries(cores).map(([name, count]) => [name, makeCores(clock, count)]));
  const alone = makeCores(clock, Number.POSITIVE_INFINITY);
  const open = new Map(
    stations.map((station) => {
      const shared = (station.cores === undefined ? undefined : groups.get(station.cores)) ?? alone;
      return [station.name, openStation(station, shared, random)] as const;
    }),
  );
  const pools = new Map(
    Object.entries(slots).map(([name, { station, each }]) => {
      const holders = stations.find(({ name: other }) => other === station)?.threads ?? 1;
      return [name, makePool({ holders, each })];
    }),
  );
  const find = (name: string) => {
    const station = open.get(name);
    if (!station) throw new TypeError(`The machine has no station ${name}`);
    return station;
  };
  /** One visit after the other; `affinity` chooses the thread among those of a station. */
  const follow = (visits: readonly Visit[], affinity: number, done: () => void): void => {
    const [visit, ...rest] = visits;
    const next = () => follow(rest, affinity, done);
    if (visit === undefined) done();
    else if ("waitMs" in visit) clock.after(visit.waitMs, next);
    else find(visit.station).compute(affinity, visit.ms, next);
  };
  return {
    follow,
    /** Calls `begin` with the number of a thread of the places' station, once one has a place. */
    enter(slots: string, priority: number, begin: (holder: number, leave: () => void) => void): void {
      const pool = pools.get(slots);
      if (!pool) throw new TypeError(`The machine has no places ${slots}`);
      pool.enter(priority, (holder) => begin(holder, () => pool.leave(holder)));
    },
    usage: () => ({
      busyMs: Object.fromEntries([...open].map(([name, { busyMs }]) => [name, busyMs()])),
      waiting: [...pools.values()].reduce((sum, pool) => sum + pool.waits(), 0),
    }),
  };
}

/** The threads of a station; what each computes takes the time of the station's distribution. */
function openStation(station: Station, cores: Cores, random: Random) {
  const threads = Array.from({ length: station.threads }, () => makeThread(station));
  const { pause, variation = 1 } = station;
  let untilPauseMs = pause?.everyMs ?? 0;
  /** With the pause that falls due in it. */
  const sample = (mean: number) => {
    const ms = random.spread(mean, variation);
    untilPauseMs -= ms;
    if (!pause || untilPauseMs > 0) return ms;
    untilPauseMs += random.exponential(pause.everyMs);
    return ms + random.spread(pause.ms, pause.variation ?? 1);
  };
  return {
    compute(affinity: number, mean: number, done: () => void): void {
      const thread = threads[affinity % threads.length];
      if (thread) cores.add(thread, { ms: sample(mean), done });
    },
    busyMs: () => threads.reduce((sum, { busyMs }) => sum + busyMs, 0),
  };
}
