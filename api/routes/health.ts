import { z } from "zod";
import { AppError } from "../../src/errors.ts";
import type { Platform } from "../../src/platform.ts";
import { type AnyRoute, route } from "../route.ts";

/** Longest time that one part has to answer, in ms. */
const CHECK_TIMEOUT_MS = 2_000;

const partSchema = z.object({
  status: z.enum(["up", "down"]),
  ms: z.number().describe("How long it took to find out"),
  detail: z.string().optional(),
});
const readinessSchema = z.object({
  status: z.enum(["ready", "not_ready"]),
  parts: z.object({ store: partSchema, redis: partSchema, workers: partSchema }),
});
type Part = z.output<typeof partSchema>;

const tags = ["Health"];

const healthz = route({
  method: "get",
  path: "/healthz",
  auth: "public",
  tags,
  summary: "Whether this process is alive",
  responses: { 200: { description: "It is", body: z.object({ status: z.literal("ok") }) } },
  handler: () => ({ status: 200, body: { status: "ok" } }),
});

const readyz = route({
  method: "get",
  path: "/readyz",
  auth: "public",
  tags,
  summary: "Whether the service can do its work",
  description: "200 only when the store, Redis and at least one worker answer.",
  responses: {
    200: { description: "All parts are up", body: readinessSchema },
    503: { description: "A part is down; `parts` tells which", body: readinessSchema },
  },
  async handler({ platform }) {
    const [store, redis, workers] = await Promise.all([
      check(() => platform.store.ping()),
      check(() => platform.redis.producer.ping()),
      check(() => findWorkers(platform)),
    ]);
    const isReady = [store, redis, workers].every((part) => part.status === "up");
    const body = { status: isReady ? "ready" : "not_ready", parts: { store, redis, workers } };
    return { status: isReady ? 200 : 503, body, headers: isReady ? {} : { "retry-after": "2" } };
  },
});

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
async function findWorkers(platform: Platform): Promise<void> {
  const queues = platform.queues.instances();
  const counts = await Promise.all(
    queues.map(async (queue) => ({ name: queue.name, count: await queue.getWorkersCount() })),
  );
  const missing = counts.filter(({ count }) => count === 0).map(({ name }) => name);
  if (missing.length > 0) throw new AppError("unavailable", `no worker for ${missing.join(", ")}`);
}

export const healthRoutes: readonly AnyRoute[] = [healthz, readyz];
