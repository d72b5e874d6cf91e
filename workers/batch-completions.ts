import type { batchQueue } from "../src/jobs/queues.ts";
import type { Handler } from "./run-job.ts";

/** Brings a provider's batch, or a client's file of requests, as far as it gets now; then the job is put off. */
export const runBatch: Handler<typeof batchQueue> = async ({ gateway }, { payload, tenantId, signal }) => {
  const { batchId, fileBatchId } = payload;
  if (batchId !== undefined) await gateway.batches.run(batchId, signal);
  if (fileBatchId !== undefined) await gateway.fileBatches.run(tenantId, fileBatchId, signal);
  return {};
};
