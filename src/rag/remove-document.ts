import { AppError, type ErrorView, notFound } from "../errors.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { DocumentRecord } from "../store/document-store.ts";
import type { RagDeps } from "./deps.ts";

const SWEEP_AFTER_MS = 30_000; // a document that nothing happened to for so long is looked at
const SWEEP_LIMIT = 100; // documents of one sweep
const LOST: ErrorView = {
  type: "server_error",
  code: "internal",
  message: "The document was not indexed: its job was lost.",
};

type RemoveDeps = Pick<RagDeps, "store" | "jobs">;

/**
 * Removes a document: out of sight first, so that a job that still runs on it cannot publish; then its job is stopped, its
 * chunks and source go. The record goes last and only when no job can write any more; else the sweep takes it.
 * @throws AppError `not_found`
 */
export async function removeDocument(deps: RemoveDeps, tenantId: string, documentId: string): Promise<void> {
  const document = await deps.store.documents.beginDelete(tenantId, documentId);
  if (!document) throw notFound("document");
  const job = await jobOf(deps, document);
  if (job && !isFinal(job.status)) await cancel(deps, job);
  await clean(deps, document);
}

/**
 * Finishes deletions, removes documents of calls that were refused, and ends those whose job ended without them: cancelled
 * in the queue, or lost with a worker. Looks at those that nothing happened to for `olderThanMs`; answers how many there were.
 */
export async function sweepDocuments(deps: RemoveDeps, olderThanMs = SWEEP_AFTER_MS): Promise<number> {
  const before = new Date(Date.now() - olderThanMs);
  const documents = await deps.store.documents.unfinished({ before, limit: SWEEP_LIMIT });
  for (const document of documents) await finish(deps, document);
  return documents.length;
}

async function finish(deps: RemoveDeps, document: DocumentRecord): Promise<void> {
  const { tenantId, _id: documentId, lastVersion } = document;
  if (document.status === "deleting") return clean(deps, document);
  const job = await jobOf(deps, document);
  if (wasNeverTold(document, job)) {
    const removed = await deps.store.documents.beginDelete(tenantId, documentId);
    if (removed) await clean(deps, removed);
    return;
  }
  if (job && (!isFinal(job.status) || job.status === "completed")) {
    return deps.store.documents.touch(tenantId, documentId); // at work still, or it has just ended well
  }
  const error: ErrorView =
    job?.status === "cancelled"
      ? { type: "server_error", code: "cancelled", message: "The job was cancelled." }
      : (job?.error ?? LOST);
  const wasAbandoned = await deps.store.documents.abandon(document, error);
  if (wasAbandoned) await deps.store.chunks.remove(tenantId, { documentId, before: lastVersion + 1 });
}

/**
 * Whether nobody was ever told of a document: its job was refused while the store was away, or the call was cut before its
 * job was there, and its repeat may have made another document under the job's id. That of a URL stays: the next try takes it up.
 */
function wasNeverTold({ _id, source, lastVersion }: DocumentRecord, job: JobRecord | null): boolean {
  const wasAccepted = job !== null && (job.status !== "failed" || job.attempts > 0) && job.subject.documentId === _id;
  return source.kind !== "url" && lastVersion === 0 && !wasAccepted;
}

/** Drops what belongs to a document in deletion, and then its record, unless its job may still be at work. */
async function clean(deps: RemoveDeps, document: DocumentRecord): Promise<void> {
  const { tenantId, _id: documentId } = document;
  const job = await jobOf(deps, document);
  await deps.store.chunks.remove(tenantId, { documentId });
  await deps.store.sources.remove(tenantId, documentId);
  if (job && !isFinal(job.status)) await deps.store.documents.touch(tenantId, documentId);
  else await deps.store.documents.drop(tenantId, documentId);
}

async function jobOf(deps: RemoveDeps, { tenantId, jobId }: DocumentRecord): Promise<JobRecord | null> {
  try {
    return await deps.jobs.get(tenantId, jobId);
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return null;
    throw error;
  }
}

async function cancel(deps: RemoveDeps, job: JobRecord): Promise<void> {
  try {
    await deps.jobs.cancel(job.tenantId, job._id);
  } catch (error) {
    if (!(error instanceof AppError && (error.code === "wrong_state" || error.code === "not_found"))) throw error; // it just ended
  }
}
