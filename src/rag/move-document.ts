import { AppError } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { NewChunk } from "../store/chunk-store.ts";
import type { DocumentRecord } from "../store/document-record.ts";
import { isFinal } from "../store/job-state.ts";
import { toSpaceKey, type VectorSpace } from "../store/vector-space.ts";
import type { RagDeps } from "./deps.ts";
import { EMBED_BATCH, embedInputs, toEmbeddingInput } from "./embed-chunks.ts";

type MoveDeps = Pick<RagDeps, "store" | "gateway" | "jobs">;

/** Where documents are moved to, and the key that the calls are counted to. */
export type Move = { space: VectorSpace; keyId: string };

/**
 * Embeds the chunks of a document again, as a version of its own, and switches queries to it by a compare-and-set; the vectors of
 * before serve until then. So a move may be cut at any point and repeated, and two may run at once. False when there is nothing
 * to move: the document is gone or changed, or a job of its own is at work, which embeds it by the present model.
 */
export async function moveDocument(
  deps: MoveDeps,
  { tenantId, signal, share }: Pick<WorkContext, "tenantId" | "signal" | "share">,
  { documentId, move: { space, keyId } }: { documentId: string; move: Move },
): Promise<boolean> {
  const { documents, chunks } = deps.store;
  const found = await documents.get(tenantId, documentId);
  if (!found || found.vectorSpace === toSpaceKey(space) || (await isAtWork(deps, found))) return false;
  const begun = await documents.beginMove(tenantId, found);
  if (!begun) return false;
  const { version, lastVersion } = begun;
  const caller = { tenantId, keyId, surface: "reindex", signal };
  const remove = () => chunks.remove(tenantId, { documentId, version: lastVersion });
  try {
    let count = 0;
    for (let length = EMBED_BATCH; length === EMBED_BATCH; count += length) {
      signal.throwIfAborted();
      const range = { from: count, limit: EMBED_BATCH };
      const stored = await chunks.read(tenantId, { documentId, version }, range);
      length = stored.length;
      const made = await embedInputs(deps, { caller, documentId, ...space }, stored.map(toEmbeddingInput));
      if (made.some(({ embedding }) => embedding.length !== space.dimensions))
        throw new AppError("provider_failed", `${space.model} made vectors of different lengths.`);
      const renewed = stored.map(({ _id, tenantId: _, liveAt, ...chunk }, index) => {
        return { ...chunk, ...made[index], version: lastVersion, model: space.model, live: false };
      });
      await share(() => chunks.insert(tenantId, renewed as NewChunk[])); // `embedInputs` gives one for each
    }
    const shown = await share(() => chunks.makeLive(tenantId, { documentId, version: lastVersion }, count));
    signal.throwIfAborted();
    const isWhole = shown === count && count === begun.chunks;
    if (!(isWhole && (await documents.finishMove(tenantId, begun, toSpaceKey(space))))) {
      await remove();
      return false;
    }
  } catch (error) {
    await remove().catch(() => undefined); // hidden, and removed with the next version
    throw error;
  }
  await chunks.remove(tenantId, { documentId, before: lastVersion });
  return true;
}

/** Whether the document's own job has not ended. */
async function isAtWork({ jobs }: Pick<MoveDeps, "jobs">, { tenantId, jobId }: DocumentRecord): Promise<boolean> {
  const job = await jobs.find(tenantId, jobId);
  return job !== null && !isFinal(job.status);
}
