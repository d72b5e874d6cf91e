import { AppError, notFound } from "../errors.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { DocumentRecord } from "../store/document-store.ts";
import type { RagDeps } from "./deps.ts";

export type RemoveDeps = Pick<RagDeps, "store" | "jobs">;

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
  await dropDeleted(deps, document);
}

/** Drops what belongs to a document in deletion, and then its record, unless its job may still be at work. */
export async function dropDeleted(deps: RemoveDeps, document: DocumentRecord): Promise<void> {
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
