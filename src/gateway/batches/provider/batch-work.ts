import { batchQueue } from "../../../jobs/queues.ts";
import { submitWork, type Work, type WorkRecord } from "../../../jobs/work.ts";
import type { BatchDocument } from "../../../store/batch-store.ts";
import { isDuplicateKey } from "../../../store/tenant-store.ts";
import type { BatchDeps } from "./deps.ts";

/** Jobs of batches are the service's own: no tenant sees them. */
const serviceTenantId = `ten_${"0".repeat(26)}`;
/** The sweep submits a closed batch that another process should have submitted this long ago, in ms. */
const SUBMIT_AFTER_MS = 3_000;

export type BatchWork = Omit<Work, "run"> & {
  /** Submits the job of a closed batch, unless it exists. */
  submit(batch: WorkRecord): Promise<void>;
};

/** How a closed batch gets its job, and how it ends without it. */
export function makeBatchWork({ store, jobs }: Pick<BatchDeps, "store" | "jobs">): BatchWork {
  const work: BatchWork = {
    queue: batchQueue,
    idField: "batchId",
    async submit({ _id, jobId }) {
      try {
        const record = { _id, jobId, tenantId: serviceTenantId };
        await submitWork(jobs, work, { record, isInteractive: false });
      } catch (error) {
        if (!isDuplicateKey(error)) throw error; // another process was first
      }
    },
    async find(_tenantId, batchId) {
      const batch = await store.batch(batchId);
      return batch && toServiceRecord(batch);
    },
    async unfinished({ limit }) {
      const overdue = await store.overdue(new Date(Date.now() - SUBMIT_AFTER_MS), limit);
      return overdue.filter(({ state }) => state === "closed").map(toServiceRecord);
    },
    touch: async () => undefined, // its job moves it on
    reject: async () => undefined, // the sweep submits it again
    async closeOrphan(batch, job) {
      if (!job) return work.submit(batch);
      const isSubmitted = (await store.batch(batch._id))?.submittedAt !== undefined;
      // The lines of a batch that never reached its provider wait on, for the next one.
      if (job.status === "failed" && !isSubmitted) {
        await store.changeBatch(batch._id, ["closed"], { $set: { state: "ended" } });
      }
    },
  };
  return work;
}

function toServiceRecord({ _id, jobId }: BatchDocument): WorkRecord {
  return { _id, jobId, tenantId: serviceTenantId };
}
