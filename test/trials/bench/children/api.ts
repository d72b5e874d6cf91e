import { monitorEventLoopDelay } from "node:perf_hooks";
import { z } from "zod";
import { allRoutes } from "../../../../api/all-routes.ts";
import { readPreference, replyWithJob } from "../../../../api/prefer.ts";
import { type AnyRoute, declareRoutes } from "../../../../api/route.ts";
import { openApi } from "../../../../api/server.ts";
import { jobViewSchema } from "../../../../src/jobs/job-view.ts";
import { runProcess } from "../../../../src/run-process.ts";
import { noopQueue } from "./noop.ts";

/** More jobs than a bench submits. */
const MOST_OPEN = 1_000_000;

const benchRoutes = declareRoutes({ auth: "member", tags: ["bench"] });

/** Submits the no-op job as the product's own routes submit theirs. */
const noopRoute = benchRoutes.post("/bench/noop", {
  summary: "Submit a job that does nothing",
  body: z.object({}),
  responses: { 202: { description: "Accepted", body: jobViewSchema.partial() } },
  isAsync: true,
  handler: async (input) => {
    const { tenantId } = input.caller;
    const job = await input.platform.jobs.submit(noopQueue, {
      tenantId,
      ids: {},
      subject: {},
      isInteractive: false,
    });
    return replyWithJob(input, job, { status: 201, preference: readPreference(input.header("prefer")) });
  },
});

/** A call with authentication, limits and a parsed body, and nothing behind it: the floor of any call over HTTP. */
const floorRoute = benchRoutes.post("/bench/floor", {
  summary: "Answer at once",
  body: z.object({ query: z.string() }),
  responses: { 200: { description: "The floor", body: z.object({ results: z.array(z.unknown()) }) } },
  handler: () => ({ status: 200, body: { results: [] } }),
});

/**
 * The product's API, with the bench's two routes added; reports over IPC how many jobs are still open, and how late its event
 * loop was since the last question (p99, in ms).
 */
async function openBenchApi() {
  const routes: AnyRoute[] = [...allRoutes, noopRoute, floorRoute];
  const api = await openApi({ routes, queues: [noopQueue] });
  const loopDelay = monitorEventLoopDelay({ resolution: 10 });
  loopDelay.enable();
  process.on("message", async (message: { type: string }) => {
    if (message.type === "loop-delay") {
      process.send?.({ type: "answer", p99Ms: loopDelay.percentile(99) / 1e6 });
      loopDelay.reset();
    }
    if (message.type !== "open-jobs") return;
    process.send?.({ type: "answer", open: await countOpenJobs(api.platform) });
  });
  return api;
}

type BenchPlatform = Awaited<ReturnType<typeof openApi>>["platform"];

async function countOpenJobs({ store, tenancy }: BenchPlatform): Promise<number> {
  const tenantId = await tenancy.ensureTenant("default");
  return store.jobs.countOpen(tenantId, MOST_OPEN);
}

await runProcess(openBenchApi);
