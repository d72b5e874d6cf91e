import { z } from "zod";
import type { QueueDefinition } from "../../../../src/jobs/queues.ts";
import { defineWork } from "../../../../src/jobs/work.ts";
import { idSchema } from "../../../../src/lib/ids.ts";

/** A job that does nothing, so that what is measured is the path of a job and not its work. */
export const noopQueue: QueueDefinition = {
  name: "noop",
  kind: "ingestion", // of the kinds that the API knows
  payload: z.strictObject({ v: z.literal(1), jobId: idSchema("job"), tenantId: z.string() }),
  concurrency: 50,
  attempts: 3,
  backoffMs: 1_000,
  timeoutMs: 60_000,
};

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
