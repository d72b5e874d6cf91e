import { z } from "zod";
import { checkHealth, type Readiness, readinessSchema } from "../../src/observe/health.ts";
import type { Platform } from "../../src/platform.ts";
import { declareRoutes } from "../route.ts";

/** How long one check serves all callers, in ms: it costs several calls of store and Redis, and anybody may request it. */
const FRESH_MS = 1_000;
const checks = new WeakMap<Platform, { at: number; readiness: Promise<Readiness> }>();

const routes = declareRoutes({ auth: "public", tags: ["Health"] });

export const healthRoutes = [
  routes.get("/healthz", {
    summary: "Whether this process is alive",
    isProbe: true,
    responses: { 200: { description: "It is", body: z.object({ status: z.literal("ok") }) } },
    result: () => ({ status: "ok" }),
  }),
  routes.get("/readyz", {
    summary: "Whether the service can answer, and the state of its parts",
    isProbe: true,
    description:
      "200 while the store takes writes: `degraded` when another part is down. The check is at most 1 s old.",
    responses: {
      200: { description: "It can answer; `parts` says what is down, if anything is", body: readinessSchema },
      503: { description: "The store is down, or jobs wait for too long", body: readinessSchema },
    },
    async handler({ platform }) {
      const body = await recentReadiness(platform);
      const isReady = body.status !== "not_ready";
      return { status: isReady ? 200 : 503, body, headers: isReady ? {} : { "retry-after": "2" } };
    },
  }),
];

function recentReadiness(platform: Platform): Promise<Readiness> {
  const known = checks.get(platform);
  if (known && performance.now() - known.at < FRESH_MS) return known.readiness;
  const readiness = checkHealth(platform);
  checks.set(platform, { at: performance.now(), readiness });
  return readiness;
}
