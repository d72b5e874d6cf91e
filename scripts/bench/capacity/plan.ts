import { DAY_S, daily } from "./arrivals.ts";
import { type Part, parts } from "./demand.ts";
import type { Machine, Visit } from "./machine.ts";
import type { Figures } from "./measured.ts";
import { type Route, simulate } from "./simulate.ts";
import { peakFactor, plannedAgent, type Volume, volumesOf } from "./volumes.ts";

/** The share of a process that the plan uses at the peak: beyond it waits grow fast, and a lost process is felt. */
export const planned = 0.6;
/** A day in the simulation, in seconds: each part of the curve is as busy as in a long one. */
const simulatedDayS = 40;
/** What a part seems to do at the peak of work that it has no part in. */
const NOISE = 0.005;
const seed = 1;

/** What a volume takes at its peak, in processes that are fully busy; further threads and parsers are cores of their machine. */
export type Shares = Record<Exclude<Part, "client">, number>;
export type Plan = {
  name: string;
  meanPerSecond: number;
  peakPerSecond: number;
  shares: Shares;
  besideCores: number;
  /** Processes to run, by CPU and by the places of jobs. */
  apis: number;
  workers: number;
  placesAtPeak: number;
  storeMessagesPerSecond: number;
  redisCommandsPerSecond: number;
  gigabytesADay: number;
  /** Over the whole day, in ms: response, and from submission to a place of a worker. Undefined where the embedded store is too small. */
  day?: { accept: { p50: number; p99: number }; place: { p50: number; p99: number } };
};

/** The plan of each volume, and of one of each sort together. */
export function planAll(figures: Figures): Plan[] {
  const volumes = volumesOf(figures);
  const single = volumes.map((volume) => withDay(planOf(volume), volume));
  const pick = (start: string) => single.filter(({ name }) => name.includes(start));
  const together = [...pick("streamed"), ...pick("agent runs"), ...pick("chunks")];
  return [...single, sumOf(`together: ${together.map(({ name }) => name.split(/[,:]/)[0]).join(", ")}`, together)];
}

function planOf({ name, perDay, takes, slots }: Volume): Plan {
  const meanPerSecond = perDay / DAY_S;
  const peakPerSecond = meanPerSecond * peakFactor;
  const cores = (ms: number) => (peakPerSecond * ms) / 1_000;
  const { api, worker, parser, store, redis } = takes.cpu;
  const shares = {
    api: cores(api),
    worker: cores(worker),
    parser: cores(parser),
    store: cores(store),
    redis: cores(redis),
  };
  const placesAtPeak = slots ? peakPerSecond * slots.heldS : 0;
  return {
    name,
    meanPerSecond,
    peakPerSecond,
    shares,
    besideCores: cores(takes.besideMs),
    ...processesFor({ shares, placesAtPeak, each: slots?.each ?? 1 }),
    placesAtPeak,
    storeMessagesPerSecond: peakPerSecond * takes.storeMessages,
    redisCommandsPerSecond: peakPerSecond * takes.redisCommands,
    gigabytesADay: (perDay * takes.storedBytes) / 1e9,
  };
}

function processesFor({ shares, placesAtPeak, each }: { shares: Shares; placesAtPeak: number; each: number }) {
  const byCpu = shares.worker < NOISE ? 0 : Math.ceil(shares.worker / planned);
  const byPlaces = Math.ceil(placesAtPeak / planned / each);
  return { apis: Math.max(1, Math.ceil(shares.api / planned)), workers: Math.max(byCpu, byPlaces) };
}

/** The sum of plans; workers are counted apart, since each kind of job has places of its own. */
function sumOf(name: string, plans: readonly Plan[]): Plan {
  const sum = (read: (plan: Plan) => number) => plans.reduce((total, plan) => total + read(plan), 0);
  const keys = ["api", "worker", "parser", "store", "redis"] as const;
  const shares = Object.fromEntries(keys.map((part) => [part, sum((plan) => plan.shares[part])])) as Shares; // of all keys
  return {
    name,
    meanPerSecond: sum(({ meanPerSecond }) => meanPerSecond),
    peakPerSecond: sum(({ peakPerSecond }) => peakPerSecond),
    shares,
    besideCores: sum(({ besideCores }) => besideCores),
    apis: Math.max(1, Math.ceil(shares.api / planned)),
    workers: sum(({ workers }) => workers),
    placesAtPeak: sum(({ placesAtPeak }) => placesAtPeak),
    storeMessagesPerSecond: sum(({ storeMessagesPerSecond }) => storeMessagesPerSecond),
    redisCommandsPerSecond: sum(({ redisCommandsPerSecond }) => redisCommandsPerSecond),
    gigabytesADay: sum(({ gigabytesADay }) => gigabytesADay),
  };
}

/** Simulates a day with the planned processes, each with a core of its own, if the embedded store can take it at all. */
function withDay(plan: Plan, volume: Volume): Plan {
  if (plan.shares.store >= 1) return plan;
  const dayS = volume.slots ? 10 * simulatedDayS : simulatedDayS; // jobs that are held long need a longer day
  const load = daily(volume.perDay, { peak: peakFactor, dayS });
  const machine = machineOf(plan, volume);
  const { accept, place } = simulate({ machine, route: routeOf(volume), load, seconds: dayS, seed });
  return { ...plan, day: { accept, place } };
}

function machineOf({ apis, workers }: Plan, { slots }: Volume): Machine {
  const threads: Partial<Record<Part, number>> = {
    api: apis,
    worker: Math.max(1, workers),
    parser: 2 * Math.max(1, workers),
  };
  return {
    stations: parts.map((name) => ({ name, threads: threads[name] ?? 1, variation: 0.5 })),
    slots: { places: { station: "worker", each: slots?.each ?? 50 } },
  };
}

/** The way of a unit of a volume: its CPU in one piece of each part, and the waits for a model where jobs hold places meanwhile. */
function routeOf({ takes, slots }: Volume): Route {
  const { api, worker, parser, store, redis } = takes.cpu;
  const visit = (station: Part, ms: number): Visit => ({ station, ms });
  const calls = slots ? plannedAgent.calls : 0;
  const piece = visit("worker", worker / (calls + 1));
  const waits = Array.from({ length: calls }, () => [{ waitMs: plannedAgent.secondsACall * 1_000 }, piece]).flat();
  const visits = [piece, ...waits, visit("parser", parser), visit("store", store)];
  return {
    accept: [visit("api", api), visit("redis", redis)],
    run: { slots: "places", visits },
  };
}
