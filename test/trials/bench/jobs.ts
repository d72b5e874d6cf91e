import { Agent, request } from "undici";
import { startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile, runConcurrently, runOpenLoop } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

const rounds = 5;
const total = 3_000;
/** The store that is asked is the one that is measured: a hundredth of a round at most is lost by asking no more often. */
const LOOK_EVERY_MS = 25;

/**
 * The whole job path (submitted over HTTP, run as a no-op by one worker, result recorded) against raw BullMQ's add and
 * process on the same Redis with its append-only file on, and the latency of a submission against Koa that only adds.
 */
export async function jobsBench(): Promise<Measured[]> {
  const stack = await openStack({ workers: 1 });
  const raw = await startChild("./children/raw-bullmq.ts", { env: { REDIS_URL: stack.redisUrl } });
  const dispatcher = new Agent({ connections: 128 });
  const post = (url: string, headers: Record<string, string>) => submitOnce(url, headers, dispatcher);
  const submit = () => post(`${stack.url}/bench/noop`, { ...stack.headers, prefer: "respond-async" });
  const submitRaw = () => post(String(raw.ready.url), { "content-type": "application/json" });
  try {
    await runConcurrently(500, 32, submit);
    await runConcurrently(500, 32, submitRaw);
    await untilIdle(stack);
    const rate: number[] = [];
    const rawRate: number[] = [];
    const latency: Latencies = { product: [], raw: [] };
    for (let round = 0; round < rounds; round += 1) {
      const { wallMs } = await raw.ask({ total, concurrency: 64 });
      rawRate.push((total / Number(wallMs)) * 1_000);
      const started = performance.now();
      await runConcurrently(total, 64, submit);
      await untilIdle(stack);
      rate.push((total / (performance.now() - started)) * 1_000);
      latency.raw.push(await openLoop(round, submitRaw));
      latency.product.push(await openLoop(round, submit));
    }
    return toLines({ rate: median(rate), rawRate: median(rawRate), latency });
  } finally {
    await dispatcher.close();
    await raw.stop();
    await stack.close();
  }
}

type Round = { p50: number; p99: number };
type Latencies = { product: Round[]; raw: Round[] };

async function openLoop(seed: number, call: () => Promise<number>): Promise<Round> {
  const latencies = await runOpenLoop({ perSecond: 50, seconds: 6, seed: seed + 1, call });
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

/** One submission; the time until its 202, in ms. */
async function submitOnce(url: string, headers: Record<string, string>, dispatcher: Agent): Promise<number> {
  const started = performance.now();
  const response = await request(url, { method: "POST", headers, body: "{}", dispatcher });
  const text = await response.body.text();
  if (response.statusCode !== 202) throw new Error(`${url} answered ${response.statusCode}: ${text}`);
  return performance.now() - started;
}

/** Waits until every accepted job's record has ended. */
async function untilIdle(stack: Stack): Promise<void> {
  const deadline = performance.now() + 120_000;
  while (performance.now() < deadline) {
    const { open } = await stack.api.ask({ type: "open-jobs" });
    if (open === 0) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  throw new Error("jobs were still open after two minutes");
}

function toLines(results: { rate: number; rawRate: number; latency: Latencies }): Measured[] {
  const of = (arm: keyof Latencies, which: keyof Round) => median(results.latency[arm].map((round) => round[which]));
  const ms = (arm: keyof Latencies, which: keyof Round) => `${format(of(arm, which))} ms`;
  const latencyLine = (which: keyof Round): Measured => ({
    what: `submission → 202, ${which} at 50/s`,
    anchor: `Koa + add ${ms("raw", which)}`,
    product: ms("product", which),
    value: of("product", which) / of("raw", which),
    must: 4,
    aim: 2,
    isMoreBetter: false,
    unit: "×",
  });
  return [
    {
      what: "jobs/s accepted → completed, record first, over HTTP",
      anchor: `raw BullMQ ${format(results.rawRate)}/s`,
      product: `${format(results.rate)}/s`,
      value: results.rate / results.rawRate,
      must: 0.08,
      aim: 0.2,
      isMoreBetter: true,
      unit: "×",
    },
    latencyLine("p50"),
    latencyLine("p99"),
  ];
}
