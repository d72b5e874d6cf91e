import { ingestionQueue } from "../jobs/queues.ts";
import { defineWork, unlessOver, type Work } from "../jobs/work.ts";
import { AppError, notFound, toErrorView } from "../lib/errors.ts";
import { type DocumentRecord, ownSources } from "../store/document-record.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import { readAgain } from "./accept-document.ts";
import type { RagDeps } from "./deps.ts";
import { dropGuardedSource } from "./guard-document.ts";
import { indexDocument } from "./index-document.ts";

type RemoveDeps = Pick<RagDeps, "store" | "jobs" | "pace">;

/** Longest wait of a removal for its tenant's turn, in ms. After it, the sweep removes the document. */
const TURN_TIMEOUT_MS = 10_000;

const LOST = toErrorView(new AppError("internal", "The document was not indexed: its job was lost."));

/** The indexing of documents as durable work. A document that is being deleted counts as unfinished until it is gone. */
export function makeDocumentWork(deps: RagDeps): Work {
  const { documents } = deps.store;
  const work: Work = defineWork<DocumentRecord>({
    queue: ingestionQueue,
    idField: "documentId",
    run: (context) => indexDocument(deps, context),
    find: documents.get,
    unfinished: documents.unfinished,
    touch(document, job) {
      if (document.status === "deleting") return dropDeleted(deps, document);
      if (job.subject.documentId !== document._id) return closeOrphan(deps, document, job);
      return documents.touch(document.tenantId, document._id);
    },
    reject: (document) => forget(deps, document),
    closeOrphan: (document, job) => closeOrphan(deps, document, job),
    /** By the source as it is now. */
    repeat: (document, request) => readAgain({ ...deps, work }, document, request),
  });
  return work;
}

async function closeOrphan(deps: RagDeps, document: DocumentRecord, job: JobRecord | null): Promise<void> {
  const { tenantId, _id: documentId, lastVersion } = document;
  if (document.status === "deleting") return dropDeleted(deps, document);
  if (isUnknownToClients(document, job)) return forget(deps, document);
  if (job?.status === "completed") return deps.store.documents.touch(tenantId, documentId); // the job has just succeeded
  const cancelled = toErrorView(new AppError("cancelled", "The job was cancelled."));
  const error = job?.status === "cancelled" ? cancelled : (job?.error ?? LOST);
  const wasAbandoned = await deps.store.documents.abandon(document, error);
  if (!wasAbandoned) return;
  await dropGuardedSource(deps, document);
  await deps.store.chunks.remove(tenantId, { documentId, before: lastVersion + 1 });
}

/** Removes a document that no client knows of. */
async function forget(deps: RemoveDeps, { tenantId, _id }: DocumentRecord): Promise<void> {
  const removed = await deps.store.documents.beginDelete(tenantId, _id);
  if (removed) await dropDeleted(deps, removed);
}

/**
 * Whether no client ever received this document's id: its job was rejected while the store was unavailable, or the request
 * was cut off before its job existed, and its repetition made another document for the job's id. A document of a URL is
 * kept: a repetition uses it again.
 */
function isUnknownToClients({ _id, source, lastVersion }: DocumentRecord, job: JobRecord | null): boolean {
  const wasAccepted = job !== null && (job.status !== "failed" || job.attempts > 0) && job.subject.documentId === _id;
  return source.kind !== "url" && lastVersion === 0 && !wasAccepted;
}

/**
 * Removes a document. It is hidden first, so that a running job cannot publish it. Then its job is cancelled, and its chunks
 * and source are removed, one document of a tenant at a time where it removes many while others work here. The record goes
 * last, once no job can write any more; else the sweep removes it later.
 * @throws AppError `not_found`
 */
export async function removeDocument(deps: RemoveDeps, tenantId: string, documentId: string): Promise<void> {
  const document = await deps.store.documents.beginDelete(tenantId, documentId);
  if (!document) throw notFound("document");
  const job = await unlessOver(deps.jobs.get(tenantId, document.jobId));
  if (job && !isFinal(job.status)) await unlessOver(deps.jobs.cancel(tenantId, job._id));
  const inTime = AbortSignal.timeout(TURN_TIMEOUT_MS);
  const removal = deps.pace.share(tenantId, inTime, () => dropDeleted(deps, document));
  await removal.catch((error: unknown) => {
    if (error !== inTime.reason) throw error;
  });
}

/** Maximum documents of a file that one call removes. */
const OF_FILE_AT_A_TIME = 200;

/** Removes all documents of a file in any collection, including expired ones. */
export async function removeOfFile(deps: RemoveDeps, tenantId: string, fileId: string): Promise<void> {
  for (;;) {
    const some = await deps.store.documents.ofFile(tenantId, fileId, { limit: OF_FILE_AT_A_TIME });
    // A removal hides its document, so the next read finds other documents.
    for (const { _id } of some) await unlessGone(removeDocument(deps, tenantId, _id));
    if (some.length < OF_FILE_AT_A_TIME) return;
  }
}

/** Waits for the removal of a document, which another call may have removed. */
export async function unlessGone(removal: Promise<void>): Promise<void> {
  await removal.catch((error: unknown) => {
    if (!(error instanceof AppError && error.code === "not_found")) throw error;
  });
}

/** Removes everything of a document that is being deleted. The record goes too, unless the job may still be running. */
async function dropDeleted(deps: RemoveDeps, document: DocumentRecord): Promise<void> {
  const { tenantId, _id: documentId, jobId } = document;
  const job = await unlessOver(deps.jobs.get(tenantId, jobId));
  await deps.store.chunks.remove(tenantId, { documentId });
  for (const sourceId of ownSources(document)) await deps.store.sources.remove(tenantId, sourceId);
  if (job && !isFinal(job.status)) await deps.store.documents.touch(tenantId, documentId);
  else await deps.store.documents.drop(tenantId, documentId);
}
