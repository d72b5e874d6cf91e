import type { GatewayCaller } from "../../gateway/money/account.ts";
import { batchQueue } from "../../jobs/queues.ts";
import { Rescheduled } from "../../jobs/reschedule.ts";
import { defineWork, submitWork, type Work } from "../../jobs/work.ts";
import { defined } from "../../lib/defined.ts";
import { AppError, fromErrorView, notFound, toErrorView } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { idOfCall } from "../../net/call-scope.ts";
import { cancellableFileBatchStates, type FileBatchRecord, openFileBatchStates } from "../../store/file-store.ts";
import type { JobRecord } from "../../store/job-record.ts";
import type { OpenedSource } from "../../store/source-store.ts";
import { maySee, type Viewer } from "../../tenancy/roles.ts";
import { type BatchEndpoint, messagesEndpoint } from "./read-lines.ts";
import { makeRequestFiles } from "./request-files.ts";
import {
  cancelItems,
  type FileBatchDeps,
  itemJobId,
  itemJobIds,
  itemStates,
  moveBatch,
  readInput,
  runFileBatch,
} from "./run.ts";
import { writeAnswers } from "./write-answers.ts";

export type FileBatchInput = Pick<
  FileBatchRecord,
  "inputFileId" | "completionWindow" | "metadata" | "outputExpiresAfter"
> & {
  endpoint: BatchEndpoint;
};
/** A batch of messages as its body came, how many requests that has, and how those for Anthropic's models are forwarded. */
export type MessageBatchInput = Required<Pick<FileBatchRecord, "sentWith">> & { bytes: Buffer; total: number };
/** Results of messages are kept for this long after their batch was made, in ms: as long as Anthropic keeps them. */
const KEEP_RESULTS_MS = 29 * 86_400_000;
/** Batches that one sweep archives. */
const SWEPT = 100;
type Submitter = Pick<GatewayCaller, "tenantId" | "keyId"> & { subject: string };

/** Files of requests, and the batches that answer them, as OpenAI's clients use them. */
export function makeFileBatches(deps: FileBatchDeps) {
  const { files } = deps.store;
  const requestFiles = makeRequestFiles(deps.store);
  const work = makeFileBatchWork(deps);
  const findBatch = async (caller: Viewer, batchId: string) => {
    const batch = await files.findBatch(caller.tenantId, batchId);
    if (batch === null || !maySee(caller, batch.keyId)) throw notFound("batch");
    return batch;
  };
  const findEnded = async (caller: Viewer, batchId: string) => {
    const batch = await findBatch(caller, batchId);
    if (!openFileBatchStates.includes(batch.status)) return batch;
    throw new AppError("wrong_state", "The batch has not ended.", { details: { status: batch.status } });
  };
  return {
    ...requestFiles,
    ...makeCreation(deps, work),
    /** @throws AppError `not_found`. */
    batch: findBatch,
    /** The results of a batch of messages, as lines of JSON (`MessageResult`). @throws AppError `not_found`, `wrong_state`. */
    async results(caller: Viewer, batchId: string): Promise<OpenedSource> {
      const { outputFileId } = await findEnded(caller, batchId);
      const opened = await deps.store.sources.open(caller.tenantId, outputFileId);
      if (opened === null) throw notFound("result");
      return opened;
    },
    /** Deletes a batch of messages that has ended, its requests and its answers. @throws AppError as `results` does. */
    async remove(caller: Viewer, batchId: string): Promise<void> {
      const batch = await findEnded(caller, batchId);
      await removeContent(deps, batch);
      await files.removeBatch(caller.tenantId, batchId);
    },
    /** Deletes the results of batches of messages that are kept no longer. Run it on a schedule. */
    async sweep(): Promise<void> {
      const now = new Date();
      for (const batch of await files.expiredBatches({ before: now, limit: SWEPT })) {
        await removeContent(deps, batch);
        const change = { $set: { archivedAt: now }, $unset: { expireAt: "" as const } };
        await files.changeBatch(batch, [batch.status], change);
      }
    },
    /** Stops what has not been answered yet. @throws AppError `not_found`, `wrong_state`. */
    async cancel(caller: Viewer, batchId: string): Promise<FileBatchRecord> {
      const batch = await findBatch(caller, batchId);
      if (batch.status === "cancelling") return batch;
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

/** How batches are made: once for a call, at however many attempts. */
function makeCreation(deps: FileBatchDeps, work: Work) {
  const { files } = deps.store;
  /** The batch of an earlier attempt at a call; null unless there is one. */
  const findMade = ({ id, mayBeThere }: ReturnType<typeof idOfCall>, { tenantId }: Submitter) =>
    mayBeThere ? files.findBatch(tenantId, id) : null;
  /** Submits the job of a batch, unless an earlier attempt at its call has. */
  const submit = async (batch: FileBatchRecord, title: string, isNew: boolean) => {
    if (!isNew && (await deps.jobs.adopt(batch.tenantId, batch.jobId))) return;
    const { _id: batchId, startedBy, keyId } = batch;
    const shown = { title, keyId, ...defined({ startedBy }) };
    await submitWork(deps.jobs, work, { record: batch, isInteractive: false, subject: { batchId }, ...shown });
  };
  return {
    /** @throws AppError `not_found` for a file that is not there, `unavailable`. */
    async create(submitter: Submitter, input: FileBatchInput) {
      const { filename } = await makeRequestFiles(deps.store).file(submitter.tenantId, input.inputFileId);
      const own = idOfCall("fileBatch");
      const made = await findMade(own, submitter);
      const batch = made ?? newBatch(submitter, { _id: own.id, total: 0, ...input });
      if (!made) await files.insertBatch(batch);
      await submit(batch, filename, !made);
      return batch;
    },
    /** A batch of messages. Its requests are no file that a client sees. @throws AppError `unavailable`. */
    async createMessages(submitter: Submitter, { bytes, ...input }: MessageBatchInput) {
      const about = { endpoint: messagesEndpoint, inputFileId: newId("file"), completionWindow: "24h" };
      const expireAt = new Date(Date.now() + KEEP_RESULTS_MS);
      const own = idOfCall("messageBatch");
      const made = await findMade(own, submitter);
      const batch = made ?? newBatch(submitter, { _id: own.id, ...about, ...input, expireAt });
      if (!made) await files.insertBatch(batch); // first, so that the sweep finds what a process that dies leaves behind
      const { tenantId, inputFileId, _id: ownerId } = batch;
      if (batch.status === "validating") await deps.store.sources.ensure(tenantId, inputFileId, { bytes, ownerId });
      await submit(batch, messagesEndpoint, !made);
      return batch;
    },
  };
}

function newBatch(
  { tenantId, keyId, subject: startedBy }: Submitter,
  about: Pick<FileBatchRecord, "_id" | "endpoint" | "inputFileId" | "completionWindow" | "total"> &
    Pick<FileBatchRecord, "metadata" | "sentWith" | "expireAt" | "outputExpiresAfter">,
): FileBatchRecord {
  const createdAt = new Date();
  return {
    tenantId,
    keyId,
    startedBy,
    jobId: newId("job"),
    ...about,
    status: "validating",
    completed: 0,
    failed: 0,
    outputFileId: newId("file"),
    errorFileId: newId("file"),
    createdAt,
    updatedAt: createdAt,
    reachedAt: { validating: createdAt },
  };
}

/** Deletes what a batch of messages was asked and has answered. */
async function removeContent({ store }: Pick<FileBatchDeps, "store">, batch: FileBatchRecord): Promise<void> {
  const { tenantId, inputFileId, outputFileId } = batch;
  const jobIds = itemJobIds(batch);
  await store.batches.removeEnded(tenantId, jobIds);
  await store.jobs.removeEnded(tenantId, jobIds);
  await store.sources.remove(tenantId, inputFileId);
  await store.sources.remove(tenantId, outputFileId);
}

/** Forgets a batch whose job never was. */
async function discard(deps: Pick<FileBatchDeps, "store">, batch: FileBatchRecord): Promise<void> {
  if (batch.endpoint === messagesEndpoint) await removeContent(deps, batch);
  await deps.store.files.removeBatch(batch.tenantId, batch._id);
}

/** Clients' batches of requests as durable work. */
function makeFileBatchWork(deps: FileBatchDeps): Work {
  const { files } = deps.store;
  return defineWork<FileBatchRecord>({
    queue: batchQueue,
    idField: "fileBatchId",
    async run({ tenantId, recordId, signal, share }) {
      await runFileBatch(deps, { tenantId, batchId: recordId, signal, share });
      return {};
    },
    find: files.findBatch,
    unfinished: files.unfinishedBatches,
    touch: (batch) => files.changeBatch(batch, openFileBatchStates, { $set: { updatedAt: new Date() } }),
    reject: (batch) => discard(deps, batch),
    closeOrphan: (batch, job) => (job ? close(deps, batch, job) : discard(deps, batch)),
  });
}

/** Ends a batch whose job is over. A cancelled one still gets the answers that are there; its last items may end later. */
async function close(deps: FileBatchDeps, batch: FileBatchRecord, job: JobRecord): Promise<void> {
  const { files } = deps.store;
  const { tenantId, _id: batchId } = batch;
  if (job.status !== "cancelled") {
    const { type, code, message } = toErrorView(
      fromErrorView(job.error, "The batch was not finished: its job was lost."),
    );
    const faults = [{ code, message, param: null, line: null }];
    await cancelItems(deps, batch);
    if (batch.endpoint === messagesEndpoint) {
      const failure = { type, code, message };
      const stateOf = await itemStates(deps.store, batch);
      const jobIdOf = (place: number) => itemJobId(batch, place);
      await writeAnswers(deps, { batch, lines: () => readInput(deps.store, batch), jobIdOf, stateOf, failure });
    }
    await moveBatch(files, batch, openFileBatchStates, { status: "failed", faults });
    return;
  }
  await moveBatch(files, batch, cancellableFileBatchStates, { status: "cancelling" });
  await cancelItems(deps, batch);
  try {
    await runFileBatch(deps, { tenantId, batchId, signal: new AbortController().signal, share: (part) => part() });
  } catch (error) {
    if (!(error instanceof Rescheduled)) throw error; // an item is still at work: the sweep comes back
  }
}
