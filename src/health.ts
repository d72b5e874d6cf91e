import { z } from "zod";
import type { Config } from "./config.ts";
import { AppError } from "./errors.ts";
import type { Jobs } from "./jobs/jobs.ts";
import type { QueueClient } from "./jobs/queue-client.ts";
import type { QueueLag } from "./jobs/queue-lag.ts";
import type { RedisConnections } from "./redis.ts";
import type { Store } from "./store/store.ts";

/** Longest time that one part has to answer, in ms. */
const CHECK_TIMEOUT_MS = 2_000;

const partSchema = z.object({
  status: z.enum(["up", "down"]),
  ms: z.number().describe("How long it took to find out"),
  detail: z.string().optional(),
});
type Part = z.output<typeof partSchema>;

const queueLagSchema = partSchema.extend({
  waiting: z.number().int().optional().describe("Jobs of all queues that could run now"),
  oldestWaitingMs: z.number().int().optional().describe("Age of the oldest of them; 0 when none waits"),
});

/** How the parts of the service are. */
export const readinessSchema = z.object({
  status: z.enum(["ready", "not_ready"]),
  parts: z.object({
    store: partSchema,
    redis: partSchema,
    workers: partSchema,
    vectorIndex: partSchema,
    queueLag: queueLagSchema,
  }),
});
export type Readiness = z.output<typeof readinessSchema>;

/** What was found out about the service: what everybody may know, and the figures behind it. */
export type Inspection = { readiness: Readiness; queues: readonly QueueLag[] };

type Inspected = {
  store: Store;
  redis: RedisConnections;
  queues: QueueClient;
  jobs: Pick<Jobs, "measure">;
  config: Pick<Config, "health">;
};

/** Asks every part whether it can do its work; ready only when all of them can. Takes 2 s at most, and never throws. */
export async function inspect({ store, redis, queues, jobs, config }: Inspected): Promise<Inspection> {
  let lags: QueueLag[] = [];
  const measure = async () => {
    lags = await jobs.measure();
    refuseLag(lags, config.health.maxQueueLagMs);
  };
  const [storePart, redisPart, workers, vectorIndex, lagPart] = await Promise.all([
    check(() => store.ping()),
    check(async () => void (await redis.producer.ping())),
    check(() => findWorkers(queues)),
    check(async () => {
      await store.checkSearch();
      return store.capabilities.vectorSearch ? undefined : "none on this server: queries scan";
    }),
    check(measure),
  ]);
  const queueLag = lags.length === 0 ? lagPart : { ...lagPart, ...sumUp(lags) };
  const parts = { store: storePart, redis: redisPart, workers, vectorIndex, queueLag };
  const isReady = Object.values(parts).every((part) => part.status === "up");
  return { readiness: { status: isReady ? "ready" : "not_ready", parts }, queues: lags };
}

/** As `inspect`, without the figures. */
export async function checkHealth(platform: Inspected): Promise<Readiness> {
  return (await inspect(platform)).readiness;
}

/** Whether this process reaches what it needs for its own work, whatever the others do. */
export async function checkOwnHealth({ store, redis }: Pick<Inspected, "store" | "redis">) {
  const [storePart, redisPart] = await Promise.all([
    check(() => store.ping()),
    check(async () => void (await redis.producer.ping())),
  ]);
  const isReady = storePart.status === "up" && redisPart.status === "up";
  return { status: isReady ? "ready" : "not_ready", parts: { store: storePart, redis: redisPart } };
}

/**
 * How a part is: up when `probe` resolves in time, perhaps with something to say. What went wrong is told in our words, not
 * in the driver's.
 */
async function check(probe: () => Promise<unknown>): Promise<Part> {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AppError("timeout", "did not answer in time")), CHECK_TIMEOUT_MS);
  });
  try {
    const detail = await Promise.race([probe(), late]);
    return { status: "up", ms: since(startedAt), ...(typeof detail === "string" ? { detail } : {}) };
  } catch (error) {
    const detail = error instanceof AppError ? error.message : "does not answer";
    return { status: "down", ms: since(startedAt), detail };
  } finally {
    clearTimeout(timer);
  }
}

function sumUp(lags: readonly QueueLag[]) {
  return {
    waiting: lags.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestWaitingMs: Math.max(...lags.map((lag) => lag.oldestWaitingMs)),
  };
}

/** @throws AppError `unavailable` that names the queues whose oldest job waits for too long. */
function refuseLag(lags: readonly QueueLag[], maxMs: number | undefined): void {
  if (maxMs === undefined) return;
  const late = lags.filter((lag) => lag.oldestWaitingMs > maxMs).map(({ queue }) => queue);
  if (late.length > 0) throw new AppError("unavailable", `jobs wait for more than ${maxMs} ms on ${late.join(", ")}`);
}

function since(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 10) / 10;
}

/** Every queue must have a worker. @throws AppError `unavailable` that names the queues without one. */
async function findWorkers(queues: QueueClient): Promise<void> {
  const counts = await Promise.all(
    queues.instances().map(async (queue) => ({ name: queue.name, count: await queue.getWorkersCount() })),
  );
  const missing = counts.filter(({ count }) => count === 0).map(({ name }) => name);
  if (missing.length > 0) throw new AppError("unavailable", `no worker for ${missing.join(", ")}`);
}
