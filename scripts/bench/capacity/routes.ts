import { type Cpu, type Demand, parts, type Shape } from "./demand.ts";
import type { Visit } from "./machine.ts";
import type { Route } from "./simulate.ts";

/** Stops of a process on its way: messages that it waits for, and what a wait takes of the part that responds. */
type Hop = Visit[];

/** Messages that are waited for are whole ones; what is sent for many units together is written behind. */
const awaited = (messages: number) => Math.round(messages);

/**
 * The way of one unit through the parts, as far as it can be known from outside: each process computes in equal pieces between
 * the messages that it waits for, and each message takes an equal share of what the store and Redis compute for a unit.
 * `restMs` is what one unit alone takes besides.
 */
export function toRoute(
  demand: Demand,
  shape: Shape,
  { slots, restMs = 0 }: { slots?: string; restMs?: number } = {},
): Route {
  const { messages, besideMs } = demand;
  const busy = withoutPauses(demand);
  const share = (part: "store" | "redis") => {
    const all = messages.api[part] + messages.worker[part];
    return all > 0 ? busy[part] / Math.max(all, 1) : 0;
  };
  const hopsTo = (part: "store" | "redis", host: "api" | "worker"): Hop[] =>
    Array.from({ length: awaited(messages[host][part]) }, () => [{ station: part, ms: share(part) }]);
  const model: Hop[] = Array.from({ length: shape.modelCalls * shape.parts }, () => [{ waitMs: shape.partWaitMs }]);
  const isJob = slots !== undefined;
  const parse: Hop[] = busy.parser > 0 ? [[{ station: "parser", ms: busy.parser }]] : [];
  const api = between("api", busy.api, [...hopsTo("store", "api"), ...(isJob ? [] : model), ...hopsTo("redis", "api")]);
  const worker = between("worker", busy.worker, [
    ...hopsTo("redis", "worker"),
    ...hopsTo("store", "worker"),
    ...parse,
    ...model,
  ]);
  const waited = (part: "store" | "redis") =>
    share(part) * (awaited(messages.api[part]) + awaited(messages.worker[part]));
  const behind: Visit[] = [
    { station: "store", ms: Math.max(0, busy.store - waited("store")) },
    { station: "redis", ms: Math.max(0, busy.redis - waited("redis")) },
    { station: "beside", ms: besideMs },
  ];
  const client = { station: "client", ms: busy.client / 2 };
  return {
    accept: [client, ...api, { waitMs: restMs }, client],
    ...(isJob ? { run: { slots, visits: worker } } : {}),
    behind: behind.filter((visit) => "ms" in visit && visit.ms > 0),
  };
}

/** A process' own computing in equal pieces around its hops. */
function between(station: string, ms: number, hops: readonly Hop[]): Visit[] {
  const piece = { station, ms: ms / (hops.length + 1) };
  return [piece, ...hops.flatMap((hop) => [...hop, piece])];
}

/** CPU without the pauses of garbage collection, which the machine adds again. */
function withoutPauses({ busy, pause }: Demand): Cpu {
  const share = (host: "api" | "worker") => Math.min(0.5, pause[host].ms / pause[host].everyMs);
  return { ...busy, api: busy.api * (1 - share("api")), worker: busy.worker * (1 - share("worker")) };
}

/**
 * What a part needs more for a visit that finds it asleep, in ms: units that come one at a time wake it at each of theirs, and take
 * so much more CPU than among many.
 */
export function wakesOf(demand: Demand, route: Route): Cpu {
  const visits = [...route.accept, ...(route.run?.visits ?? []), ...(route.behind ?? [])];
  const of = (part: (typeof parts)[number]) => {
    const count = visits.filter((visit) => "station" in visit && visit.station === part).length;
    return Math.max(0, demand.lone[part] - demand.busy[part]) / Math.max(1, count);
  };
  return Object.fromEntries(parts.map((part) => [part, of(part)])) as Cpu; // of all parts
}
