import { z } from "zod";
import { AppError } from "./errors.ts";
import type { Platform } from "./platform.ts";

/** Longest time that one part has to answer, in ms. */
const CHECK_TIMEOUT_MS = 2_000;

const partSchema = z.object({
  status: z.enum(["up", "down"]),
  ms: z.number().describe("How long it took to find out"),
  detail: z.string().optional(),
});
type Part = z.output<typeof partSchema>;

/** How the parts of the service are. */
export const readinessSchema = z.object({
  status: z.enum(["ready", "not_ready"]),
  parts: z.object({ store: partSchema, redis: partSchema, workers: partSchema }),
});
export type Readiness = z.output<typeof readinessSchema>;

/** Asks every part whether it can do its work; ready only when all of them can. Takes 2 s at most, and never throws. */
export async function checkHealth({
  store,
  redis,
  queues,
}: Pick<Platform, "store" | "redis" | "queues">): Promise<Readiness> {
  const [storePart, redisPart, workers] = await Promise.all([
    check(() => store.ping()),
    check(() => redis.producer.ping()),
    check(() => findWorkers(queues)),
  ]);
  const isReady = [storePart, redisPart, workers].every((part) => part.status === "up");
  return { status: isReady ? "ready" : "not_ready", parts: { store: storePart, redis: redisPart, workers } };
}

/** How a part is: up when `probe` resolves in time. What went wrong is told in our words, not in the driver's. */
async function check(probe: () => Promise<unknown>): Promise<Part> {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new AppError("timeout", "did not answer in time")), CHECK_TIMEOUT_MS);
  });
  try {
    await Promise.race([probe(), late]);
    return { status: "up", ms: since(startedAt) };
  } catch (error) {
    const detail = error instanceof AppError ? error.message : "does not answer";
    return { status: "down", ms: since(startedAt), detail };
  } finally {
    clearTimeout(timer);
  }
}

function since(startedAt: number): number {
  return Math.round((performance.now() - startedAt) * 10) / 10;
}

/** Every queue must have a worker. @throws AppError `unavailable` that names the queues without one. */
async function findWorkers(queues: Platform["queues"]): Promise<void> {
  const counts = await Promise.all(
    queues.instances().map(async (queue) => ({ name: queue.name, count: await queue.getWorkersCount() })),
  );
  const missing = counts.filter(({ count }) => count === 0).map(({ name }) => name);
  if (missing.length > 0) throw new AppError("unavailable", `no worker for ${missing.join(", ")}`);
}
