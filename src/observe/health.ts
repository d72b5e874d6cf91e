import { z } from "zod";
import { AppError } from "../lib/errors.ts";
import { withTimeout } from "../lib/with-timeout.ts";

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

/**
 * How a queue is. `waiting` counts what could run now, in BullMQ; the age is that of the oldest such record, in ms.
 * `placesPerWorker`: jobs that one of its workers runs at once, on the average; 0 without a worker.
 */
export type QueueLag = {
  queue: string;
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
  workers: number;
  placesPerWorker: number;
  oldestWaitingMs: number;
  /** Somebody has paused it, as in Bull Board: no worker takes its jobs. */
  isPaused: boolean;
};

type Queues = {
  check(): Promise<void>;
  instances(): { name: string; getWorkersCount(): Promise<number>; isPaused(): Promise<boolean> }[];
};

/** What is inspected, each part by the functions that find out how it is. A function whose part is down throws. */
export type Inspected = {
  store: {
    ping(): Promise<unknown>;
    checkWrites(): Promise<unknown>;
    checkSearch(): Promise<unknown>;
    capabilities: { vectorSearch: boolean };
  };
  /** `check` resolves with a remark on the server's settings, if there is one. */
  redis: { check(): Promise<string | undefined> };
  queues: Queues;
  jobs: { measure(): Promise<QueueLag[]> };
  config: { health: { maxQueueLagMs: number | undefined } };
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

async function checkRedis({ redis, queues }: Pick<Inspected, "redis" | "queues">): Promise<string | undefined> {
  const [remark] = await Promise.all([redis.check(), queues.check()]);
  return remark;
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
async function findWorkers(queues: Queues): Promise<void> {
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
