import { z } from "zod";
import type { QueueDefinition } from "../../src/jobs/queues.ts";
import { defineWork, type WorkContext } from "../../src/jobs/work.ts";
import { idSchema, newId } from "../../src/lib/ids.ts";
import type { Platform } from "../../src/platform.ts";
import type { JobRecord } from "../../src/store/job-record.ts";

/** A queue of the tests: what a job does is looked up by its id, so that each test scripts its own jobs. */
export const scriptedQueue: QueueDefinition = {
  name: "scripted",
  kind: "ingestion",
  payload: z.strictObject({ v: z.literal(1), jobId: idSchema("job"), tenantId: idSchema("tenant") }),
  concurrency: 10,
  attempts: 3,
  backoffMs: 20,
  timeoutMs: 1_500,
};

/** What a work does with its records that has none. */
export const withoutRecords = {
  find: async () => null,
  unfinished: async () => [],
  touch: async () => undefined,
  reject: async () => undefined,
  closeOrphan: async () => undefined,
};

export type Script = (context: WorkContext & { attempt: number }) => Promise<unknown>;

/** A work that runs the script of the job, and the way to submit a job with a script. */
export function makeScriptedJobs() {
  const scripts = new Map<string, { script: Script; attempts: number }>();
  return {
    work: defineWork({
      queue: scriptedQueue,
      idField: "jobId",
      run(context) {
        const scripted = scripts.get(context.jobId);
        if (!scripted) throw new Error(`no script for ${context.jobId}`);
        scripted.attempts += 1;
        return scripted.script({ ...context, attempt: scripted.attempts });
      },
      ...withoutRecords,
    }),
    async submit(platform: Platform, tenantId: string, script: Script): Promise<JobRecord> {
      const jobId = newId("job");
      scripts.set(jobId, { script, attempts: 0 });
      return platform.jobs.submit(scriptedQueue, {
        tenantId,
        jobId,
        ids: {},
        subject: {},
        isInteractive: true,
      });
    },
  };
}
