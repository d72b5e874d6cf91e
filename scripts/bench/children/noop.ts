import { z } from "zod";
import { idSchema } from "../../../src/ids.ts";
import { defineQueue } from "../../../src/jobs/define-queue.ts";
import { defineWork } from "../../../src/jobs/work.ts";

/** A job that does nothing, so that what is measured is the path of a job and not its work. */
export const noopQueue = defineQueue({
  name: "noop",
  kind: "ingestion", // of the kinds that the API knows
  payload: z.strictObject({ v: z.literal(1), jobId: idSchema("job"), tenantId: z.string() }),
  concurrency: 50,
  attempts: 3,
  backoffMs: 1_000,
  timeoutMs: 60_000,
  keepCompleted: { age: 3_600, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
});

/** The work of that job. It has no records of its own. */
export const noopWork = defineWork({
  queue: noopQueue,
  idField: "jobId",
  run: async () => ({ ok: true }),
  find: async () => null,
  unfinished: async () => [],
  touch: async () => undefined,
  reject: async () => undefined,
  closeOrphan: async () => undefined,
});
