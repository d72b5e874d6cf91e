import { steadily } from "./arrivals.ts";
import { type Check, type CheckCase, type Layout, layouts } from "./checks.ts";
import { type Demand, type Part, parts, shapes } from "./demand.ts";
import type { Machine, Station } from "./machine.ts";
import type { Figures } from "./measured.ts";
import { toRoute, wakesOf } from "./routes.ts";
import { type Route, simulate } from "./simulate.ts";

const seed = 1;
/** Calls begin together where the generator's timer fires. */
const timerMs = 1;
/** A thread that had nothing to do for less than this has not slept. */
const deepSleepMs = 0.1;
const slotsName = "places";
/** Children of one tenant that parse at once, in each worker. */
const parsersAWorker = 2;

type Latency = { p50: number; p99: number };
/** `apiShare`: of the time that the API's thread computes at half load. */
type Predicted = { perSecond: number; half?: { accept: Latency; job: Latency; apiShare: number } };
export type Compared = { measured: Check; predicted: Predicted };

/** What the simulation says of each case that was measured. */
export function compareAll({ demands, checks }: Figures): Compared[] {
  return checks.map((measured) => ({ measured, predicted: predict(demands[measured.kind], measured) }));
}

/** Simulates what a check measures: units a second at saturation, and latencies at half of what was measured. */
function predict(demand: Demand, check: Check): Predicted {
  const restMs = restOf(demand, check);
  const { machine, route } = openCase(demand, check, restMs);
  const { callers, total } = { callers: check.atOnce, total: check.units };
  const full = simulate({ machine, route, load: { callers, total }, seconds: 600, seed });
  const perSecond = total / full.lastEndS;
  if (!check.half) return { perSecond };
  const load = { ...steadily(check.perSecond / 2), tickMs: timerMs };
  const { accept, run, utilisation } = simulate({ machine, route, load, seconds: 32, warmUp: 2, seed });
  // A job's time counts from its record, which is written about half-way to the response.
  const job = { p50: run.p50 + accept.p50 / 2, p99: run.p99 + accept.p50 / 2 };
  return { perSecond, half: { accept: { p50: accept.p50, p99: accept.p99 }, job, apiShare: utilisation.api ?? 0 } };
}

/** What one unit alone takes besides all computing: system calls, sockets, switches. */
function restOf(demand: Demand, { kind }: CheckCase): number {
  const layout = "two cores, the API alone on one"; // where demands are measured
  const { machine, route } = openCase(demand, { kind, layout, workers: 1 }, 0);
  const alone = simulate({ machine, route, load: { callers: 1, total: 400 }, seconds: 600, seed });
  return Math.max(0, demand.latencyMs.p50 - alone.accept.p50);
}

/** The machine and the way of a unit in a case. */
function openCase(
  demand: Demand,
  { kind, layout, workers }: CheckCase,
  restMs: number,
): { machine: Machine; route: Route } {
  const { slots } = shapes[kind];
  const route = toRoute(demand, shapes[kind], { restMs, ...(slots === undefined ? {} : { slots: slotsName }) });
  const wakes = wakesOf(demand, route);
  const counts: Partial<Record<Part, number>> = { worker: workers, parser: workers * parsersAWorker };
  const stations = parts.map(
    (name): Station => ({
      name,
      threads: counts[name] ?? 1,
      cores: coresOf(layout, name),
      wakeMs: wakes[name],
      deepSleepMs,
      variation: Math.min(1, demand.variation),
      ...(name === "api" || name === "worker" ? { pause: demand.pause[name] } : {}),
    }),
  );
  return {
    machine: {
      stations: [...stations, { name: "beside", threads: 1, cores: coresOf(layout, "store") }],
      cores: { "0": 1, "1": 1, any: 2 },
      slots: { [slotsName]: { station: "worker", each: slots ?? 1 } },
    },
    route,
  };
}

const coresOf = (layout: Layout, part: Part) => String(layouts[layout][part]);
