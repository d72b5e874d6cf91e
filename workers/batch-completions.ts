import type { batchQueue } from "../src/jobs/queues.ts";
import type { Handler } from "./run-job.ts";

/** Brings one batch as far as it gets now; while its provider works on it, the job is put off. */
export const runBatch: Handler<typeof batchQueue> = async (platform, { payload, signal }) => {
  await platform.gateway.batches.run(payload.batchId, signal);
  return {};
};
