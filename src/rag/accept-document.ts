import { submitWork, type Work } from "../jobs/work.ts";
import { AppError, notFound, toErrorView } from "../lib/errors.ts";
import { collectionOf } from "../store/collection-filter.ts";
import type { DocumentRecord } from "../store/document-record.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { RagDeps } from "./deps.ts";
import { type NewDocument, recordSource } from "./record-source.ts";

/** A document to accept. `isInteractive`: the caller waits for it. */
export type Acceptance = NewDocument & { isInteractive: boolean };

/**
 * Keeps the source, records the document and submits its job, in this order: a job always finds its document.
 * @throws AppError `source_refused`; `source_unreadable` for a picture, a program and the like; `quota_exceeded`;
 * `insufficient_scope`; `not_found` for a document to replace that is not there; `unavailable` (then nothing is left behind,
 * or the sweep removes it).
 */
export async function acceptDocument(
  deps: RagDeps & { work: Work; allowOrigins: readonly string[] },
  { isInteractive, ...given }: Acceptance,
): Promise<{ job: JobRecord; documentId: string }> {
  const { record, isNew } = await recordSource(deps, given);
  return {
    job: await submitDocument(deps, record, { isNew, isInteractive, subject: given.caller.subject }),
    documentId: record._id,
  };
}

/**
 * Submits a job that reads a document's URL again, unless its server says by `ETag` or `Last-Modified` that it has not changed.
 * @throws AppError `wrong_state` for a document of no URL; `not_found`, `unavailable`.
 */
export async function refreshDocument(
  deps: RagDeps & { work: Work },
  known: DocumentRecord,
  request: Again,
): Promise<{ job: JobRecord }> {
  if (known.source.kind !== "url") throw new AppError("wrong_state", "Only a document of a URL can be refreshed.");
  return readAgain(deps, known, request);
}

/** Who has a document read again, by which job. */
type Again = { caller: Pick<Caller, "keyId" | "subject">; jobId: string; isInteractive: boolean };

/** Submits a job that reads a document's source again, of whichever kind. @throws AppError as `refreshDocument`. */
export async function readAgain(
  deps: RagDeps & { work: Work },
  known: DocumentRecord,
  { caller, jobId, isInteractive }: Again,
): Promise<{ job: JobRecord }> {
  const change = { jobId, keyId: caller.keyId, refreshJobId: jobId };
  const record = await deps.store.documents.reassign(known, change);
  if (!record && (await deps.store.documents.get(known.tenantId, known._id)))
    throw new AppError("wrong_state", "The document was given another job at the same time.", { retryable: true });
  if (!record) throw notFound("document");
  return { job: await submitDocument(deps, record, { isNew: false, isInteractive, subject: caller.subject }) };
}

/** Submits the job of a document that was just recorded. @throws AppError `unavailable`. */
export function submitDocument(
  deps: RagDeps & { work: Work },
  record: DocumentRecord,
  { isNew, isInteractive, subject }: { isNew: boolean; isInteractive: boolean; subject: string },
): Promise<JobRecord> {
  const { tenantId, _id: documentId, jobId } = record;
  const fail = (_: DocumentRecord, error: unknown) =>
    deps.store.documents.fail(tenantId, documentId, { jobId, error: toErrorView(error) });
  const work = isNew ? deps.work : { ...deps.work, reject: fail }; // queries still see a known document
  const { title, keyId } = record;
  const about = { title, startedBy: subject, keyId, subject: { collection: collectionOf(record) } };
  return submitWork(deps.jobs, work, { record, isInteractive, ...about });
}
