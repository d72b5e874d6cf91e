import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { startChild } from "../children.ts";
import { withStore } from "../fill-chunks.ts";
import { percentile, runConcurrently, runOpenLoop } from "../measure.ts";
import { type Cpu, type Kind, parts, shapes } from "./demand.ts";
import { counts, type Desk } from "./demands.ts";
import { findPids, place, readCpu } from "./processes.ts";

/** Where the processes of a check run. `one core`: the whole product; the generator and its model have the other. */
export const layouts = {
  "one core": { client: 0, api: 1, worker: 1, parser: 1, store: 1, redis: 1 },
  "two cores, the API alone on one": { client: 0, api: 1, worker: 0, parser: 0, store: 0, redis: 0 },
  "two cores, shared by all": { client: "any", api: "any", worker: "any", parser: "any", store: "any", redis: "any" },
} as const;
export type Layout = keyof typeof layouts;

export type CheckCase = { kind: Kind; layout: Layout; workers: 1 | 2 };
type Latency = { p50: number; p99: number };
/** What was measured: units a second with as many at once as the stack takes, and at half of that rate. */
export type Check = CheckCase & { units: number; atOnce: number; perSecond: number; half?: Half };
/** At half load: times until the response and until a job's end, and CPU of each part for a unit; in ms. */
type Half = { accept: Latency; job?: Latency; cpu: Cpu; longestStallMs: { api: number; generator: number } };

/** In this order, since the second worker stays. */
export const checkCases: readonly CheckCase[] = [
  { kind: "chat", layout: "one core", workers: 1 },
  { kind: "chat", layout: "two cores, the API alone on one", workers: 1 },
  { kind: "stored response", layout: "one core", workers: 1 },
  { kind: "query", layout: "one core", workers: 1 },
  { kind: "no-op job", layout: "one core", workers: 1 },
  { kind: "no-op job", layout: "two cores, shared by all", workers: 1 },
  { kind: "long workflow", layout: "one core", workers: 1 },
  { kind: "long workflow", layout: "two cores, shared by all", workers: 1 },
  { kind: "large document", layout: "one core", workers: 1 },
  { kind: "large document", layout: "two cores, shared by all", workers: 1 },
  { kind: "no-op job", layout: "two cores, shared by all", workers: 2 },
  { kind: "long workflow", layout: "two cores, shared by all", workers: 2 },
  { kind: "large document", layout: "two cores, shared by all", workers: 2 },
];

const halfLoadSeconds = 4;
/** At that rate before anything is measured. */
const settleSeconds = 1;
/** Too few a second for latencies that mean something. */
const leastPerSecond = 40;

/** Measures one case; the second worker is started when it is asked for. */
export async function measureCheck(desk: Desk, asked: CheckCase): Promise<Check> {
  const { stack, redis, works, clients } = desk;
  const { kind, layout, workers } = asked;
  while (stack.workers.length < workers) {
    const args = ["count-work"];
    stack.workers.push(await startChild("./children/worker.ts", { env: stack.env, args }));
  }
  const pin = async () => place(await findPids(stack, redis, clients), layouts[layout]);
  const { busy: units, warmUp, atOnce } = counts[kind];
  await pin();
  // V8 compiles what it has not seen often: the first case of a kind needs all of the warm-up.
  const isFirst = checkCases.find((other) => other.kind === kind) === asked;
  await runConcurrently(isFirst ? warmUp : Math.ceil(warmUp / 4), atOnce, () => works.run(kind));
  await works.untilEnded();
  await pin(); // children that parse were started meanwhile
  const started = performance.now();
  await runConcurrently(units, atOnce, () => works.run(kind));
  await works.untilEnded();
  const perSecond = (units / (performance.now() - started)) * 1_000;
  const half = perSecond < leastPerSecond ? undefined : await measureHalf(desk, kind, perSecond / 2);
  return { ...asked, units, atOnce, perSecond, ...(half ? { half } : {}) };
}

async function measureHalf({ stack, works, redis, clients }: Desk, kind: Kind, perSecond: number): Promise<Half> {
  const call = () => works.run(kind);
  await runOpenLoop({ perSecond, seconds: settleSeconds, seed: 2, call });
  await works.untilEnded();
  await delay(300);
  const since = new Date();
  const read = async () => (await readCpu(await findPids(stack, redis, clients))).main;
  const before = await read();
  await stack.api.ask({ type: "loop-delay" });
  const delays = monitorEventLoopDelay({ resolution: 10 });
  delays.enable();
  const accepted = await runOpenLoop({ perSecond, seconds: halfLoadSeconds, seed: 1, call });
  delays.disable();
  const longestStallMs = {
    api: Number((await stack.api.ask({ type: "loop-delay" })).maxMs),
    generator: delays.max / 1e6,
  };
  await works.untilEnded();
  const after = await read();
  const cpu = Object.fromEntries(parts.map((part) => [part, (after[part] - before[part]) / accepted.length])) as Cpu; // of all
  const accept = { p50: percentile(accepted, 0.5), p99: percentile(accepted, 0.99) };
  if (shapes[kind].slots === undefined) return { accept, cpu, longestStallMs };
  const ended = await withStore(stack, (db) =>
    db
      .collection<{ createdAt: Date; finishedAt: Date }>("jobs")
      .find({ createdAt: { $gte: since } })
      .project<{ createdAt: Date; finishedAt: Date }>({ createdAt: 1, finishedAt: 1 })
      .toArray(),
  );
  const took = ended.map(({ createdAt, finishedAt }) => finishedAt.getTime() - createdAt.getTime());
  return { accept, cpu, longestStallMs, job: { p50: percentile(took, 0.5), p99: percentile(took, 0.99) } };
}
