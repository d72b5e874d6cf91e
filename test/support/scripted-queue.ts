import { z } from "zod";
import { idSchema, newId } from "../../src/ids.ts";
import { defineQueue } from "../../src/jobs/define-queue.ts";
import type { JobRecord } from "../../src/jobs/job-record.ts";
import type { Platform } from "../../src/platform.ts";
import { bindHandler } from "../../workers/handlers.ts";
import type { JobContext } from "../../workers/run-job.ts";

/** A queue of the tests: what a job does is looked up by its id, so that each test scripts its own jobs. */
export const scriptedQueue = defineQueue({
  name: "scripted",
  kind: "ingestion",
  payload: z.strictObject({ v: z.literal(1), jobId: idSchema("job"), tenantId: idSchema("tenant") }),
  concurrency: 10,
  attempts: 3,
  backoffMs: 20,
  timeoutMs: 1_500,
  keepCompleted: { age: 60, count: 100 },
  keepFailed: { age: 60, count: 100 },
});

export type Script = (
  context: Pick<JobContext<unknown>, "jobId" | "attempt" | "isLastAttempt" | "signal" | "progress">,
) => Promise<unknown>;

/** A handler that runs the script of the job, and the way to submit a job with a script. */
export function makeScriptedJobs() {
  const scripts = new Map<string, Script>();
  return {
    entry: bindHandler(scriptedQueue, (_platform, context) => {
      const script = scripts.get(context.jobId);
      if (!script) throw new Error(`no script for ${context.jobId}`);
      return script(context);
    }),
    async submit(platform: Platform, tenantId: string, script: Script): Promise<JobRecord> {
      const jobId = newId("job");
      scripts.set(jobId, script);
      return platform.jobs.submit(scriptedQueue, {
        tenantId,
        jobId,
        payload: (id) => ({ v: 1 as const, jobId: id, tenantId }),
        subject: {},
        isInteractive: true,
      });
    },
  };
}
