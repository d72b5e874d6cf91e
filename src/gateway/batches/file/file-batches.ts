import { AppError, notFound } from "../../../errors.ts";
import { newId } from "../../../ids.ts";
import { batchQueue } from "../../../jobs/queues.ts";
import { Rescheduled } from "../../../jobs/reschedule.ts";
import { defineWork, submitWork, type Work } from "../../../jobs/work.ts";
import {
  cancellableFileBatchStates,
  type FileBatchDocument,
  type FileDocument,
  openFileBatchStates,
} from "../../../store/file-store.ts";
import type { JobRecord } from "../../../store/job-record.ts";
import { isFinal } from "../../../store/job-state.ts";
import type { GatewayCaller } from "../../money/account.ts";
import type { BatchEndpoint } from "./read-lines.ts";
import { type FileBatchDeps, itemJobIds, moveBatch, runFileBatch } from "./run.ts";

export type FileBatchInput = Pick<FileBatchDocument, "inputFileId" | "completionWindow" | "metadata"> & {
  endpoint: BatchEndpoint;
};

/** Files of requests, and the batches that answer them, as OpenAI's clients use them. */
export function makeFileBatches(deps: FileBatchDeps) {
  const { files } = deps.store;
  const requestFiles = makeRequestFiles(deps.store);
  const work = makeFileBatchWork(deps);
  const findBatch = async (tenantId: string, batchId: string) => {
    const batch = await files.findBatch(tenantId, batchId);
    if (batch === null) throw notFound("batch");
    return batch;
  };
  return {
    ...requestFiles,
    /** @throws AppError `not_found` for a file that is not there, `unavailable`. */
    async create({ tenantId, keyId }: Pick<GatewayCaller, "tenantId" | "keyId">, input: FileBatchInput) {
      await requestFiles.file(tenantId, input.inputFileId);
      const createdAt = new Date();
      const batch: FileBatchDocument = {
        _id: newId("fileBatch"),
        tenantId,
        keyId,
        jobId: newId("job"),
        ...input,
        status: "validating",
        total: 0,
        completed: 0,
        failed: 0,
        outputFileId: newId("file"),
        errorFileId: newId("file"),
        createdAt,
        updatedAt: createdAt,
        reachedAt: { validating: createdAt },
      };
      await files.insertBatch(batch);
      await submitWork(deps.jobs, work, { record: batch, isInteractive: false, subject: { batchId: batch._id } });
      return batch;
    },
    /** @throws AppError `not_found`. */
    batch: findBatch,
    /** Stops what has not been answered yet. @throws AppError `not_found`, `wrong_state`. */
    async cancel(tenantId: string, batchId: string): Promise<FileBatchDocument> {
      const batch = await findBatch(tenantId, batchId);
      const cancelling = await moveBatch(files, batch, cancellableFileBatchStates, { status: "cancelling" });
      if (cancelling === null) {
        const details = { status: batch.status };
        throw new AppError("wrong_state", "The batch has ended, or is about to.", { details });
      }
      await cancelItems(deps, cancelling);
      return cancelling;
    },
    work,
  };
}

function makeRequestFiles({ files, sources }: FileBatchDeps["store"]) {
  const findFile = async (tenantId: string, fileId: string) => {
    const file = await files.find(tenantId, fileId);
    if (file === null) throw notFound("file");
    return file;
  };
  return {
    async addFile(
      tenantId: string,
      { filename, bytes }: { filename: string; bytes: Uint8Array },
    ): Promise<FileDocument> {
      const _id = newId("file");
      const file = { _id, tenantId, filename, purpose: "batch" as const, bytes: bytes.length, createdAt: new Date() };
      await sources.write(tenantId, _id, bytes);
      await files.ensure(file);
      return file;
    },
    /** @throws AppError `not_found`. */
    file: findFile,
    /** @throws AppError `not_found`. */
    async content(tenantId: string, fileId: string): Promise<Buffer> {
      await findFile(tenantId, fileId);
      const bytes = await sources.read(tenantId, fileId);
      if (bytes === null) throw notFound("file");
      return bytes;
    },
    /** @throws AppError `not_found`; `wrong_state` while a batch reads it. */
    async removeFile(tenantId: string, fileId: string): Promise<void> {
      await findFile(tenantId, fileId);
      if (await files.isInUse(tenantId, fileId)) {
        throw new AppError("wrong_state", "A batch that has not ended reads this file.");
      }
      await files.remove(tenantId, fileId);
      await sources.remove(tenantId, fileId);
    },
  };
}

/** Clients' batches of requests as durable work. */
function makeFileBatchWork(deps: FileBatchDeps): Work {
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

/** Cancels the jobs of a batch's items; an item that has ended meanwhile keeps its answer. */
async function cancelItems({ jobs, store }: FileBatchDeps, batch: FileBatchDocument): Promise<void> {
  const { tenantId } = batch;
  for (const [jobId, state] of await store.jobs.statesOf(tenantId, itemJobIds(batch))) {
    if (!isFinal(state)) await jobs.cancel(tenantId, jobId).catch(ignoreEnded);
  }
}

/** Ends a batch whose job is over. A cancelled one still gets the answers that are there; its last items may end later. */
async function close(deps: FileBatchDeps, batch: FileBatchDocument, job: JobRecord): Promise<void> {
  const { files } = deps.store;
  const { tenantId, _id: batchId } = batch;
  if (job.status !== "cancelled") {
    const { code = "internal", message = "The batch was not finished: its job was lost." } = job.error ?? {};
    const faults = [{ code, message, param: null, line: null }];
    await cancelItems(deps, batch);
    await moveBatch(files, batch, openFileBatchStates, { status: "failed", faults });
    return;
  }
  await moveBatch(files, batch, cancellableFileBatchStates, { status: "cancelling" });
  await cancelItems(deps, batch);
  try {
    await runFileBatch(deps, { tenantId, batchId, signal: new AbortController().signal });
  } catch (error) {
    if (!(error instanceof Rescheduled)) throw error; // an item is still at work: the sweep comes back
  }
}

function ignoreEnded(error: unknown): void {
  if (!(error instanceof AppError) || error.code !== "wrong_state") throw error;
}
