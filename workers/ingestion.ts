import type { ingestionQueue } from "../src/jobs/queues.ts";
import type { Handler } from "./run-job.ts";

/** Indexes the document of a job. */
export const runIngestion: Handler<typeof ingestionQueue> = (platform, context) => {
  const { payload, tenantId, jobId, isLastAttempt, signal, progress } = context;
  return platform.rag.index({ tenantId, documentId: payload.documentId, jobId, isLastAttempt, signal, progress });
};
