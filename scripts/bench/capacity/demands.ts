import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { type Child, startChild } from "../children.ts";
import { median, percentile, runConcurrently } from "../measure.ts";
import type { Stack } from "../stack.ts";
import { type Cpu, type Demand, type Kind, type Part, type Pause, parts, shapes } from "./demand.ts";
import { findPids, readCpu, readRedis, storedBytes } from "./processes.ts";
import type { Works } from "./works.ts";

export type Desk = { stack: Stack; redis: Redis; works: Works; clients: readonly Child[] };
/** With nothing to do, in CPU ms per ms. */
export type Idle = { main: Cpu; besideMs: number };

/** How many units: before anything is measured, with many at once, and one at a time. */
export const counts: Record<Kind, { warmUp: number; busy: number; lone: number; atOnce: number }> = {
  chat: { warmUp: 8_000, busy: 8_000, lone: 800, atOnce: 32 },
  "streamed chat": { warmUp: 600, busy: 2_000, lone: 40, atOnce: 128 },
  "stored response": { warmUp: 3_000, busy: 3_000, lone: 400, atOnce: 32 },
  query: { warmUp: 100, busy: 200, lone: 60, atOnce: 16 },
  "no-op job": { warmUp: 1_500, busy: 3_000, lone: 150, atOnce: 32 },
  "short workflow": { warmUp: 200, busy: 600, lone: 60, atOnce: 16 },
  "long workflow": { warmUp: 100, busy: 200, lone: 40, atOnce: 16 },
  "small document": { warmUp: 200, busy: 400, lone: 40, atOnce: 16 },
  "large document": { warmUp: 6, busy: 24, lone: 3, atOnce: 8 },
  "agent run": { warmUp: 40, busy: 150, lone: 10, atOnce: 32 },
};
/** Between jobs that come one at a time, in ms: they are accepted long before they have ended. */
const PAUSE_MS = 6;
/** Until records that are written behind have been written, in ms. */
const SETTLE_MS = 150;

/** What the parts use with nothing to do, per ms: it is no part of any unit. */
export async function measureIdle(desk: Desk): Promise<Idle> {
  const [before, started] = [await look(desk), performance.now()];
  await delay(2_000);
  const after = await look(desk);
  const tookMs = performance.now() - started;
  const share = (part: Part) => Math.max(0, after.cpu.main[part] - before.cpu.main[part]) / tookMs;
  return { main: toCpu(share), besideMs: Math.max(0, after.cpu.besideMs - before.cpu.besideMs) / tookMs };
}

/** What one unit of a kind takes. */
export async function measureDemand(desk: Desk, kind: Kind, idle: Idle): Promise<Demand> {
  const { works } = desk;
  const count = counts[kind];
  await runConcurrently(count.warmUp, count.atOnce, () => works.run(kind));
  await works.untilEnded();
  await delay(SETTLE_MS);
  const busy = await measure(desk, idle, count.busy, () =>
    runConcurrently(count.busy, count.atOnce, () => works.run(kind)),
  );
  const latencies: number[] = [];
  const lone = await measure(desk, idle, count.lone, async () => {
    for (let n = 0; n < count.lone; n += 1) {
      latencies.push(await works.run(kind));
      if (shapes[kind].slots !== undefined) await delay(PAUSE_MS);
    }
  });
  return {
    ...busy,
    lone: lone.busy,
    latencyMs: { p50: median(latencies), p99: percentile(latencies, 0.99) },
    variation: variationOf(latencies),
  };
}

/** From the middle of the samples, which a busy moment of the machine does not change: (p84 - p16) is two deviations. */
export function variationOf(samples: readonly number[]): number {
  const deviation = (percentile(samples, 0.84) - percentile(samples, 0.16)) / 2;
  return (deviation / median(samples)) ** 2;
}

type Measured = Omit<Demand, "lone" | "latencyMs" | "variation">;

async function measure(desk: Desk, idle: Idle, count: number, run: () => Promise<unknown>): Promise<Measured> {
  const [before, started] = [await look(desk), performance.now()];
  await run();
  await desk.works.untilEnded();
  await delay(SETTLE_MS);
  const [after, tookMs] = [await look(desk), performance.now() - started];
  const per = (read: (at: Look) => number, idleMs = 0) =>
    Math.max(0, read(after) - read(before) - idleMs * tookMs) / count;
  const host = (name: "api" | "worker") => ({
    messages: { store: per((at) => at[name].store.messages), redis: per((at) => at[name].redis.messages) },
    pause: toPause({
      cpuMs: per((at) => at.cpu.main[name]),
      count: per((at) => at[name].pauses.count),
      ms: per((at) => at[name].pauses.ms),
      squares: per((at) => at[name].pauses.squares),
    }),
  });
  const [api, worker] = [host("api"), host("worker")];
  return {
    busy: toCpu((part) => per((at) => at.cpu.main[part], idle.main[part])),
    besideMs: per((at) => at.cpu.besideMs, idle.besideMs),
    messages: { api: api.messages, worker: worker.messages },
    bytes: {
      store: per((at) => at.api.store.bytes + at.worker.store.bytes),
      redis: per((at) => at.api.redis.bytes + at.worker.redis.bytes),
    },
    redisCommands: per((at) => at.redis.commands),
    storedBytes: per((at) => at.storedBytes),
    pause: { api: api.pause, worker: worker.pause },
  };
}

function toPause({ cpuMs, count, ms, squares }: { cpuMs: number; count: number; ms: number; squares: number }): Pause {
  if (count === 0 || ms === 0) return { everyMs: 1e9, ms: 0, variation: 1 };
  return { everyMs: cpuMs / count, ms: ms / count, variation: Math.max(0, (squares * count) / ms ** 2 - 1) };
}

type Traffic = { messages: number; bytes: number };
/** What a process has sent until now; see children/work-usage.ts. */
type HostUse = { store: Traffic; redis: Traffic; pauses: { count: number; ms: number; squares: number } };
type Look = Awaited<ReturnType<typeof look>>;

async function look({ stack, redis, clients }: Desk) {
  const ask = async (child: Child) => (await child.ask({ type: "work" })) as HostUse; // its answer
  const [worker] = stack.workers;
  if (!worker) throw new Error("demands are measured with a worker");
  const pids = await findPids(stack, redis, clients);
  return {
    api: await ask(stack.api),
    worker: await ask(worker),
    redis: await readRedis(redis),
    storedBytes: storedBytes(stack),
    cpu: await readCpu(pids),
  };
}

const toCpu = (read: (part: Part) => number) => Object.fromEntries(parts.map((part) => [part, read(part)])) as Cpu; // of all

/** The model's server of the stack that is measured. */
export const startModel = (kind: "quick" | "agent", thinkMs: number) =>
  kind === "quick"
    ? startChild("./children/upstream.ts", { core: 0 })
    : startChild("./children/agent-upstream.ts", { args: [String(thinkMs)], core: 0 });
