import { AppError, type ErrorView, toErrorView } from "../errors.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { ingestionQueue } from "../jobs/queues.ts";
import type { Work } from "../jobs/work.ts";
import type { DocumentRecord } from "../store/document-store.ts";
import type { RagDeps } from "./deps.ts";
import { indexDocument } from "./index-document.ts";
import { dropDeleted, type RemoveDeps } from "./remove-document.ts";

const LOST: ErrorView = {
  type: "server_error",
  code: "internal",
  message: "The document was not indexed: its job was lost.",
};

/** The indexing of documents as durable work. A document in deletion is open until all of it is gone. */
export function makeDocumentWork(deps: RagDeps): Work<DocumentRecord> {
  const { documents } = deps.store;
  return {
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
  };
}

async function closeOrphan(deps: RemoveDeps, document: DocumentRecord, job: JobRecord | null): Promise<void> {
  const { tenantId, _id: documentId, lastVersion } = document;
  if (document.status === "deleting") return dropDeleted(deps, document);
  if (isUnknownToClients(document, job)) return forget(deps, document);
  if (job?.status === "completed") return deps.store.documents.touch(tenantId, documentId); // it has just ended well
  const cancelled = toErrorView(new AppError("cancelled", "The job was cancelled."));
  const error = job?.status === "cancelled" ? cancelled : (job?.error ?? LOST);
  const wasAbandoned = await deps.store.documents.abandon(document, error);
  if (wasAbandoned) await deps.store.chunks.remove(tenantId, { documentId, before: lastVersion + 1 });
}

/** Removes a document that no client knows of. */
async function forget(deps: RemoveDeps, { tenantId, _id }: DocumentRecord): Promise<void> {
  const removed = await deps.store.documents.beginDelete(tenantId, _id);
  if (removed) await dropDeleted(deps, removed);
}

/**
 * Whether no client ever received this document's id: its job was rejected while the store was unavailable, or the request was
 * cut off before its job existed, and its repeat may have made another document under the job's id. A document of a URL is
 * kept: a repeat uses it again.
 */
function isUnknownToClients({ _id, source, lastVersion }: DocumentRecord, job: JobRecord | null): boolean {
  const wasAccepted = job !== null && (job.status !== "failed" || job.attempts > 0) && job.subject.documentId === _id;
  return source.kind !== "url" && lastVersion === 0 && !wasAccepted;
}
