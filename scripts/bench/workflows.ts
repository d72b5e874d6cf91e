import { workflowStepsQueue } from "../../src/jobs/queues.ts";
import { startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile, runConcurrently } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

const stepsOfRun = 8;
const rounds = 3;
const runsOfRound = 200;
const alone = 60;
/** Runs that wait for a person while a step's latency is measured. */
const waiting = [10, 1_000, 10_000];
const deadlineMs = 300_000;

/**
 * Steps of workflows that do nothing outside (conditions) against jobs of raw BullMQ, chained by hand on the same Redis: steps a
 * second with one and two workers, the time that each further step adds to a run, and whether that grows with the number of runs
 * that wait for an approval.
 */
export async function workflowsBench(): Promise<Measured[]> {
  const lines: Measured[] = [];
  for (const workers of [1, 2]) lines.push(...(await measureRate(workers)));
  return [...lines, await measureGrowth()];
}

/** Steps a second, and a run's time for each further step; raw BullMQ and the product by turns. */
async function measureRate(workers: number): Promise<Measured[]> {
  const stack = await openStack({ workers });
  const raw = await startChild("./children/raw-chain.ts", {
    args: [String(workers)],
    env: { REDIS_URL: stack.redisUrl },
  });
  try {
    const workflowId = await create(stack, conditions(stepsOfRun));
    await runMany(stack, workflowId, 50);
    await raw.ask({ type: "chain", chains: 50, steps: stepsOfRun });
    const [rate, rawRate]: [number[], number[]] = [[], []];
    const [gaps, rawSingle]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      const chained = await raw.ask({ type: "chain", chains: runsOfRound, steps: stepsOfRun });
      rawRate.push(toRate(Number(chained.wallMs)));
      rate.push(toRate(await runMany(stack, workflowId, runsOfRound)));
      rawSingle.push(...((await raw.ask({ type: "single", count: 200 })).latencies as number[]));
      gaps.push(...(await runAlone(stack, workflowId, alone)));
    }
    return toLines({ workers, rate, rawRate, gaps, rawSingle });
  } finally {
    await raw.stop();
    await stack.close();
  }
}

const toRate = (wallMs: number) => (runsOfRound * stepsOfRun * 1_000) / wallMs;

/** The exponent with which a step's time grows with the number of runs that wait for a person. */
async function measureGrowth(): Promise<Measured> {
  const stack = await openStack({ workers: 1 });
  try {
    const workflowId = await create(stack, conditions(stepsOfRun));
    const asking = await create(stack, [{ type: "human_approval", assigneeRole: "owner" }]);
    await runMany(stack, workflowId, 50);
    const found: { count: number; ms: number }[] = [];
    let there = 0;
    for (const count of waiting) {
      await runConcurrently(count - there, 32, () => start(stack, asking));
      there = count;
      await untilWaiting(stack, count);
      found.push({ count, ms: median(await runAlone(stack, workflowId, alone * 3)) });
    }
    const shown = found.map(({ count, ms }) => `${count.toLocaleString("en-US")}: ${format(ms)} ms`);
    return {
      what: "growth of a step's time with the runs that wait for an approval",
      anchor: shown[0] ?? "",
      product: shown.slice(1).join(", "),
      value: slope(found.map(({ count, ms }) => [Math.log(count), Math.log(ms)])),
      must: 0.05,
      aim: 0.02,
      isMoreBetter: false,
      unit: " exponent",
    };
  } finally {
    await stack.close();
  }
}

/** The slope of the line of least squares. */
function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const covariance = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return covariance / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

/** Conditions are steps that do nothing outside. */
const conditions = (count: number) =>
  // biome-ignore lint/suspicious/noThenProperty: so it is called in the interface
  Array.from({ length: count }, () => ({ type: "condition", expression: "true", then: [] }));

async function create({ url, headers }: Stack, steps: object[]): Promise<string> {
  const body = JSON.stringify({ name: "Bench", steps });
  const made = await fetch(`${url}/workflows`, { method: "POST", headers, body });
  if (made.status !== 201) throw new Error(await made.text());
  return ((await made.json()) as { workflowId: string }).workflowId;
}

async function start({ url, headers }: Stack, workflowId: string): Promise<void> {
  const started = await fetch(`${url}/workflows/${workflowId}/execute`, { method: "POST", headers, body: "{}" });
  if (started.status !== 202) throw new Error(await started.text());
  await started.arrayBuffer();
}

/** Starts runs and waits for the end of all; the wall time in ms. */
async function runMany(stack: Stack, workflowId: string, count: number): Promise<number> {
  const started = performance.now();
  await runConcurrently(count, 16, () => start(stack, workflowId));
  await until(async () => (await stack.api.ask({ type: "open-jobs" })).open === 0);
  return performance.now() - started;
}

type RunView = { status: string; steps: { startedAt: string; finishedAt: string }[] };

/** Runs one at a time; of each, the time that a further step added, in ms. */
async function runAlone({ url, headers }: Stack, workflowId: string, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const ended = await fetch(`${url}/workflows/${workflowId}/execute`, {
      method: "POST",
      headers: { ...headers, prefer: "wait=30" },
      body: "{}",
    });
    const { runId } = (await ended.json()) as { runId: string };
    const run = (await (await fetch(`${url}/workflows/${workflowId}/runs/${runId}`, { headers })).json()) as RunView;
    const [first, last] = [run.steps[0], run.steps.at(-1)];
    if (run.status !== "completed" || !first || !last) throw new Error(`a run did not end: ${run.status}`);
    times.push((Date.parse(last.finishedAt) - Date.parse(first.finishedAt)) / (run.steps.length - 1));
  }
  return times;
}

async function untilWaiting({ mongoUrl, env }: Stack, count: number): Promise<void> {
  const { connectStore } = await import("../../src/store/connect.ts");
  const store = await connectStore({ url: mongoUrl, db: env.MONGODB_DB ?? "switchyard", timeoutMs: 5_000 });
  try {
    const waits = { queue: workflowStepsQueue.name, status: "awaiting" };
    await until(async () => (await store.db.collection("jobs").countDocuments(waits)) >= count);
  } finally {
    await store.close();
  }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error("runs were still open after five minutes");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function toLines(found: {
  workers: number;
  rate: number[];
  rawRate: number[];
  gaps: number[];
  rawSingle: number[];
}): Measured[] {
  const { workers, rate, rawRate, gaps, rawSingle } = found;
  const by = `${workers} worker${workers === 1 ? "" : "s"}`;
  const gapLine = (share: number, must: number, aim: number): Measured => ({
    what: `each further step of a workflow, p${share * 100}, ${by}`,
    anchor: `raw add → finished ${format(percentile(rawSingle, share))} ms`,
    product: `${format(percentile(gaps, share))} ms`,
    value: percentile(gaps, share) / percentile(rawSingle, share),
    must,
    aim,
    isMoreBetter: false,
    unit: "×",
  });
  return [
    {
      what: `workflow steps/s, recorded, ${by}`,
      anchor: `raw BullMQ, chained ${format(median(rawRate))}/s`,
      product: `${format(median(rate))}/s`,
      value: median(rate) / median(rawRate),
      must: 0.05,
      aim: 0.2,
      isMoreBetter: true,
      unit: "×",
    },
    gapLine(0.5, 6, 3),
    gapLine(0.99, 6, 3),
  ];
}
