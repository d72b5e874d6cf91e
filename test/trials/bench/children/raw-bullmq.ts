import type { AddressInfo } from "node:net";
import { Queue, QueueEvents, Worker } from "bullmq";
import { Redis } from "ioredis";
import Koa from "koa";

/**
 * The anchors of the job bench, on the product's own Redis: BullMQ with one producer and one worker and nothing else, and a
 * Koa that adds a job and answers 202.
 */
const redisUrl = process.env.REDIS_URL ?? "";
const connect = () => new Redis(redisUrl, { maxRetriesPerRequest: null });
const queue = new Queue("raw", { connection: connect(), prefix: "bench" });
const events = new QueueEvents("raw", { connection: connect(), prefix: "bench" });
const worker = new Worker("raw", async () => ({ ok: true }), {
  connection: connect(),
  prefix: "bench",
  concurrency: 50,
});
const retention = { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } };
await Promise.all([queue.waitUntilReady(), events.waitUntilReady(), worker.waitUntilReady()]);

const app = new Koa();
app.use(async (ctx) => {
  let text = "";
  ctx.req.setEncoding("utf8");
  for await (const part of ctx.req) text += part;
  JSON.parse(text);
  const job = await queue.add("noop", { v: 1 }, retention);
  ctx.status = 202;
  ctx.body = { jobId: job.id };
});
const server = app.listen(0, "127.0.0.1", () => {
  process.send?.({ type: "ready", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});

/** Adds `total` jobs, `concurrency` in flight, and waits until the last has been processed; the wall time in ms. */
async function addAndProcess(total: number, concurrency: number): Promise<number> {
  let done = 0;
  const started = performance.now();
  const finished = new Promise<void>((resolve) => {
    const count = () => {
      done += 1;
      if (done < total) return;
      worker.off("completed", count);
      resolve();
    };
    worker.on("completed", count);
  });
  let next = 0;
  const lane = async () => {
    for (; next < total; ) {
      next += 1;
      await queue.add("noop", { v: 1 }, retention);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  await finished;
  return performance.now() - started;
}

process.on("message", async (message: { total: number; concurrency: number }) => {
  process.send?.({ type: "answer", wallMs: await addAndProcess(message.total, message.concurrency) });
});
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
