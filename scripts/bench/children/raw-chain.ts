import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

/**
 * The anchor of the workflow bench: jobs of BullMQ chained by hand, each adding the next, on the product's own Redis and with
 * nothing else. `chain` answers steps a second and the waits from one step's end to the next one's start, `single` the time from
 * adding a job to its end, one at a time; all in ms.
 */
const { REDIS_URL: redisUrl = "" } = process.env;
const [workerCount = "1"] = process.argv.slice(2);
const connect = () => new Redis(redisUrl, { maxRetriesPerRequest: null });
type Step = { left: number; endedAt?: number };
const queue = new Queue<Step>("raw-chain", { connection: connect(), prefix: "bench" });
const retention = { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } };
let gaps: number[] = [];
let onStep: (left: number) => void = () => undefined;

const workers = Array.from(
  { length: Number(workerCount) },
  () =>
    new Worker<Step>(
      "raw-chain",
      async ({ data: { left, endedAt } }) => {
        if (endedAt !== undefined) gaps.push(performance.now() - endedAt);
        if (left > 1) await queue.add("step", { left: left - 1, endedAt: performance.now() }, retention);
      },
      { connection: connect(), prefix: "bench", concurrency: 16 },
    ),
);
for (const worker of workers) worker.on("completed", ({ data }) => onStep(data.left));
await Promise.all([queue.waitUntilReady(), ...workers.map((worker) => worker.waitUntilReady())]);

async function runChains(chains: number, steps: number): Promise<{ wallMs: number; gaps: number[] }> {
  gaps = [];
  const started = performance.now();
  const ended = new Promise<void>((resolve) => {
    let done = 0;
    onStep = (left) => {
      if (left === 1) done += 1;
      if (done === chains) resolve();
    };
  });
  for (let n = 0; n < chains; n += 1) await queue.add("step", { left: steps }, retention);
  await ended;
  return { wallMs: performance.now() - started, gaps };
}

async function runSingle(count: number): Promise<{ latencies: number[] }> {
  const latencies: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const ended = new Promise<void>((resolve) => {
      onStep = () => resolve();
    });
    const started = performance.now();
    await queue.add("step", { left: 1 }, retention);
    await ended;
    latencies.push(performance.now() - started);
  }
  return { latencies };
}

type Question = { type: "chain"; chains: number; steps: number } | { type: "single"; count: number };
process.on("message", async (question: Question) => {
  const response =
    question.type === "chain" ? await runChains(question.chains, question.steps) : await runSingle(question.count);
  process.send?.({ type: "answer", ...response });
});
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
process.send?.({ type: "ready" });
