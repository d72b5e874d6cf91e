import { sweepEach } from "../jobs/sweep-each.ts";
import type { DocumentRecord } from "../store/document-record.ts";
import { isFinal } from "../store/job-state.ts";
import type { RagDeps } from "./deps.ts";

/** Documents that one sweep looks at. */
const SWEPT = 50;

/**
 * Removes the chunks of an attempt that failed, unless it did so after its version was published: queries see these. It is not published
 * after that: what the attempt has sent may still be under way to the store.
 */
export async function removeUnlessPublished(
  { store }: Pick<RagDeps, "store">,
  { tenantId, _id: documentId, lastVersion }: Pick<DocumentRecord, "tenantId" | "_id" | "lastVersion">,
): Promise<void> {
  await store.documents.refuse(tenantId, documentId, { from: lastVersion, to: lastVersion });
  const now = await store.documents.get(tenantId, documentId);
  if (now?.version !== lastVersion) await store.chunks.remove(tenantId, { documentId, version: lastVersion });
}

/**
 * Removes the chunks of versions that nobody sees, which attempts have left whose processes died: of one that was not published, or
 * those before one that was. Run it on a schedule, in any number of processes.
 */
export async function sweepStrayChunks({ store, jobs }: Pick<RagDeps, "store" | "jobs">): Promise<void> {
  const { documents, chunks, reindexes } = store;
  await sweepEach(await documents.withStrays({ before: new Date(), limit: SWEPT }), async (document) => {
    const { tenantId, _id: documentId, version, lastVersion } = document;
    const [job, move] = await Promise.all([jobs.find(tenantId, document.jobId), reindexes.findOpen(tenantId)]);
    if (move || (job && !isFinal(job.status))) return documents.lookForStraysLater(document);
    await documents.refuse(tenantId, documentId, { from: version + 1, to: lastVersion });
    const now = await documents.get(tenantId, documentId);
    if (now) await chunks.remove(tenantId, { documentId, before: lastVersion + 1, except: now.version });
    await documents.haveNoStrays(document);
  });
}
