import { z } from "zod";
import type { Config } from "../config/config.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { QueueClient } from "../jobs/queue-client.ts";
import type { QueueLag } from "../jobs/queue-lag.ts";
import { AppError } from "../lib/errors.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import { type RedisConnections, toRedisError } from "../store/redis/redis.ts";
import type { Store } from "../store/store.ts";

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

/** The state of each part of the service. */
export const readinessSchema = z.object({
  status: z
    .enum(["ready", "degraded", "not_ready"])
    .describe("`degraded`: a part is down, and what needs it is refused; `not_ready`: nothing can be answered"),
  parts: z.object({
    store: partSchema,
    redis: partSchema,
    workers: partSchema,
    vectorIndex: partSchema,
    queueLag: queueLagSchema,
  }),
});
export type Readiness = z.output<typeof readinessSchema>;

/** The readiness, which anybody may know, and the figures behind it. */
export type Inspection = { readiness: Readiness; queues: readonly QueueLag[] };

export type Inspected = {
  store: Store;
  redis: RedisConnections;
  queues: QueueClient;
  jobs: Pick<Jobs, "measure">;
  config: Pick<Config, "health">;
};

/** Checks whether each part can do its work. Takes 2 s at most, and never throws. */
export async function inspect({ store, redis, queues, jobs, config }: Inspected): Promise<Inspection> {
  let lags: QueueLag[] = [];
  let isLate = false;
  const measure = async () => {
    lags = await jobs.measure();
    const late = findLate(lags, config.health.maxQueueLagMs);
    isLate = late !== undefined;
    if (late) throw late;
  };
  const [storePart, redisPart, workers, vectorIndex, lagPart] = await Promise.all([
    check(() => store.checkWrites()),
    check(() => checkRedis({ redis, queues })),
    check(() => findWorkers(queues)),
    check(async () => {
      await store.checkSearch();
      return store.capabilities.vectorSearch ? undefined : "none on this server: queries scan";
    }),
    check(measure),
  ]);
  const queueLag = lags.length === 0 ? lagPart : { ...lagPart, ...sumUp(lags) };
  const parts = { store: storePart, redis: redisPart, workers, vectorIndex, queueLag };
  return { readiness: toReadiness(parts, ["store", ...(isLate ? ["queueLag"] : [])]), queues: lags };
}

/** As `inspect`, without the figures. */
export async function checkHealth(platform: Inspected): Promise<Readiness> {
  return (await inspect(platform)).readiness;
}

/**
 * Whether this process reaches what it needs for its own work, whatever the others do. `needs`: the parts without which it can
 * do nothing at all.
 */
export async function checkOwnHealth(
  { store, redis, queues }: Pick<Inspected, "store" | "redis" | "queues">,
  needs: readonly ("store" | "redis")[],
) {
  const [storePart, redisPart] = await Promise.all([
    check(() => store.ping()),
    check(() => checkRedis({ redis, queues })),
  ]);
  return toReadiness({ store: storePart, redis: redisPart }, needs);
}

function toReadiness<P extends Record<string, Part>>(parts: P, needs: readonly string[]) {
  const down = Object.keys(parts).filter((name) => parts[name]?.status === "down");
  const isReady = !down.some((name) => needs.includes(name));
  const status = !isReady ? ("not_ready" as const) : down.length > 0 ? ("degraded" as const) : ("ready" as const);
  return { status, parts };
}

/** The state of a part: up if `probe` resolves in time, perhaps with a remark. Failures are worded by us, not by the driver. */
async function check(probe: () => Promise<unknown>): Promise<Part> {
  const startedAt = performance.now();
  const elapsed = () => Math.round((performance.now() - startedAt) * 10) / 10;
  try {
    const late = () => new AppError("timeout", "did not answer in time");
    const detail = await withTimeout(probe(), CHECK_TIMEOUT_MS, late);
    return { status: "up", ms: elapsed(), ...(typeof detail === "string" ? { detail } : {}) };
  } catch (error) {
    const detail = error instanceof AppError ? error.message : "does not answer";
    return { status: "down", ms: elapsed(), detail };
  }
}

/**
 * Asks a queue, writes a key that is gone at once (a Redis without memory still responds), and looks at every connection of
 * this process.
 */
async function checkRedis({ redis, queues }: Pick<Inspected, "redis" | "queues">): Promise<string | undefined> {
  const { producer, prefix } = redis;
  try {
    await Promise.all([producer.set(`${prefix}:probe`, "", "PX", 1), queues.check()]);
  } catch (error) {
    throw toRedisError(error) ?? error;
  }
  redis.checkConnections();
  return redis.remark();
}

function sumUp(lags: readonly QueueLag[]) {
  return {
    waiting: lags.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestWaitingMs: Math.max(...lags.map((lag) => lag.oldestWaitingMs)),
  };
}

/** An error that names the queues whose oldest job waits for too long; undefined when none does. */
function findLate(lags: readonly QueueLag[], maxMs: number | undefined): AppError | undefined {
  if (maxMs === undefined) return undefined;
  const late = lags.filter((lag) => lag.oldestWaitingMs > maxMs).map(({ queue }) => queue);
  if (late.length === 0) return undefined;
  return new AppError("unavailable", `jobs wait for more than ${maxMs} ms on ${late.join(", ")}`);
}

/** Every queue must have a worker that takes its jobs. @throws AppError `unavailable` that names the queues without one. */
async function findWorkers(queues: QueueClient): Promise<void> {
  const all = await Promise.all(
    queues.instances().map(async (queue) => {
      const [count, isPaused] = await Promise.all([queue.getWorkersCount(), queue.isPaused()]);
      return { name: queue.name, count, isPaused };
    }),
  );
  const namesOf = (some: typeof all) => some.map(({ name }) => name).join(", ");
  const missing = namesOf(all.filter(({ count }) => count === 0));
  const paused = namesOf(all.filter(({ isPaused }) => isPaused));
  const problems = [
    ...(missing ? [`no worker for ${missing}`] : []),
    ...(paused ? [`somebody has paused ${paused}`] : []),
  ];
  if (problems.length > 0) throw new AppError("unavailable", problems.join("; "));
}
