import { z } from "zod";
import { checkHealth, readinessSchema } from "../../src/health.ts";
import { type AnyRoute, route } from "../route.ts";

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
    const body = await checkHealth(platform);
    const isReady = body.status === "ready";
    return { status: isReady ? 200 : 503, body, headers: isReady ? {} : { "retry-after": "2" } };
  },
});

export const healthRoutes: readonly AnyRoute[] = [healthz, readyz];
