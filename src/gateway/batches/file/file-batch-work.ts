import { AppError } from "../../../errors.ts";
import { Postponed } from "../../../jobs/postpone.ts";
import { batchQueue } from "../../../jobs/queues.ts";
import { defineWork, type Work } from "../../../jobs/work.ts";
import type { FileBatchDocument } from "../../../store/file-store.ts";
import { cancellableFileBatchStates, openFileBatchStates } from "../../../store/file-store.ts";
import type { JobRecord } from "../../../store/job-record.ts";
import { isFinal } from "../../../store/job-state.ts";
import type { FileBatchDeps } from "./deps.ts";
import { itemJobIds, runFileBatch } from "./run.ts";

/** Clients' batches of requests as durable work. */
export function makeFileBatchWork(deps: FileBatchDeps): Work {
  const { files } = deps.store;
  return defineWork<FileBatchDocument>({
    queue: batchQueue,
    idField: "fileBatchId",
    async run({ tenantId, recordId, signal }) {
      await runFileBatch(deps, { tenantId, batchId: recordId, signal });
      return {};
    },
    find: files.findBatch,
    unfinished: files.unfinishedBatches,
    touch: (batch) => files.changeBatch(batch, openFileBatchStates, { $set: { updatedAt: new Date() } }),
    reject: ({ tenantId, _id }) => files.removeBatch(tenantId, _id),
    closeOrphan: (batch, job) => (job ? close(deps, batch, job) : files.removeBatch(batch.tenantId, batch._id)),
  });
}

/** Cancels the jobs of a batch's lines; a line that has ended meanwhile keeps its answer. */
export async function cancelLines({ jobs, statesOf }: FileBatchDeps, batch: FileBatchDocument): Promise<void> {
  const { tenantId } = batch;
  for (const [jobId, state] of await statesOf(tenantId, itemJobIds(batch))) {
    if (!isFinal(state)) await jobs.cancel(tenantId, jobId).catch(ignoreEnded);
  }
}

/** Ends a batch whose job is over. A cancelled one still gets the answers that are there; its last lines may end later. */
async function close(deps: FileBatchDeps, batch: FileBatchDocument, job: JobRecord): Promise<void> {
  const { files } = deps.store;
  const { tenantId, _id: batchId } = batch;
  const now = new Date();
  if (job.status !== "cancelled") {
    const { code = "internal", message = "The batch was not finished: its job was lost." } = job.error ?? {};
    const faults = [{ code, message, param: null, line: null }];
    await cancelLines(deps, batch);
    await files.changeBatch(batch, openFileBatchStates, {
      $set: { status: "failed", faults, updatedAt: now, "reachedAt.failed": now },
    });
    return;
  }
  await files.changeBatch(batch, cancellableFileBatchStates, {
    $set: { status: "cancelling", updatedAt: now, "reachedAt.cancelling": now },
  });
  await cancelLines(deps, batch);
  try {
    await runFileBatch(deps, { tenantId, batchId, signal: new AbortController().signal });
  } catch (error) {
    if (!(error instanceof Postponed)) throw error; // a line is still at work: the sweep comes back
  }
}

function ignoreEnded(error: unknown): void {
  if (!(error instanceof AppError) || error.code !== "wrong_state") throw error;
}
