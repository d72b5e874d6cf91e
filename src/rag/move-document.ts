import type { WorkContext } from "../jobs/work.ts";
import { AppError } from "../lib/errors.ts";
import type { ChunkRecord } from "../store/chunk.ts";
import type { NewChunk } from "../store/chunk-store.ts";
import type { DocumentRecord } from "../store/document-record.ts";
import { isFinal } from "../store/job-state.ts";
import { toSpaceKey, type VectorSpace } from "../store/vector-space.ts";
import type { RagDeps } from "./deps.ts";
import { EMBED_BATCH, type Embedded, embedInputs, toEmbeddingInput } from "./embed-chunks.ts";
import { removeUnlessPublished } from "./stray-chunks.ts";

type MoveDeps = Pick<RagDeps, "store" | "gateway" | "jobs">;
type MoveContext = Pick<WorkContext, "tenantId" | "jobId" | "signal" | "share">;

/** The target of a move, and the key that its calls are billed to. */
export type Move = { space: VectorSpace; keyId: string };

/**
 * Embeds the chunks of a document again, as a version of its own, and switches queries to it by a compare-and-set; the vectors of
 * before serve until then. So a move may be cut at any point and repeated, and two may run at once. False when there is nothing
 * to move: the document is gone or changed, or a job of its own is at work, which embeds it by the present model.
 */
export async function moveDocument(
  deps: MoveDeps,
  context: MoveContext,
  { documentId, move: { space, keyId } }: { documentId: string; move: Move },
): Promise<boolean> {
  const { tenantId, jobId, signal } = context;
  const move = await beginMove(deps, context, { documentId, space });
  if (!move) return false;
  const caller = { tenantId, keyId, surface: "reindex", signal, origin: { jobId } };
  try {
    for (let from = 0, length = EMBED_BATCH; length === EMBED_BATCH; from += length) {
      signal.throwIfAborted();
      const stored = await move.read(from);
      length = stored.length;
      const made = await embedInputs(deps, { caller, documentId, ...space }, stored.map(toEmbeddingInput));
      if (!move.fits(made)) throw new AppError("provider_failed", `${space.model} made vectors of different lengths.`);
      await move.write(stored, made);
    }
  } catch (error) {
    await move.remove().catch(() => undefined); // hidden, and removed with the next version
    throw error;
  }
  return move.finish();
}

/** Starts to move a document. Returns null if it cannot be moved. */
async function beginMove(
  deps: MoveDeps,
  { tenantId, signal, share }: MoveContext,
  { documentId, space }: { documentId: string; space: VectorSpace },
) {
  const { documents, chunks } = deps.store;
  const found = await findMovable(deps, tenantId, { documentId, space });
  const begun = found && (await documents.beginMove(tenantId, found));
  if (!begun) return null;
  const { version, lastVersion } = begun;
  const remove = () => chunks.remove(tenantId, { documentId, version: lastVersion });
  let written = 0;
  const publish = async () => {
    const shown = await chunks.makeLive(tenantId, { documentId, version: lastVersion }, written, share);
    signal.throwIfAborted();
    const isWhole = shown === written && written === begun.chunks;
    return isWhole && documents.finishMove(tenantId, begun, toSpaceKey(space));
  };
  return {
    /** Up to `EMBED_BATCH` chunks of the version that queries see, from a number on. */
    read: (from: number) => chunks.read(tenantId, { documentId, version }, { from, limit: EMBED_BATCH }),
    /** Whether vectors have the length of the space. */
    fits: (made: readonly Embedded[]) => made.every(({ embedding }) => embedding.length === space.dimensions),
    /** Writes chunks with their vectors, one for each, hidden. */
    async write(stored: readonly ChunkRecord[], made: readonly Embedded[]): Promise<void> {
      const renewed = stored.map(({ _id, tenantId: _, liveAt, ...chunk }, index) => {
        return { ...chunk, ...made[index], version: lastVersion, model: space.model, live: false };
      });
      await chunks.insert(tenantId, renewed as NewChunk[], share); // `made` has one for each
      written += stored.length;
    },
    remove,
    /** Switches queries to the version. False, and the version is removed, when the document has changed. */
    async finish(): Promise<boolean> {
      try {
        if (!(await publish())) {
          await remove();
          return false;
        }
      } catch (error) {
        // The store may have switched, and its answer was lost.
        await removeUnlessPublished(deps, begun).catch(() => undefined);
        throw error;
      }
      await chunks.remove(tenantId, { documentId, before: lastVersion });
      await documents.haveNoStrays(begun);
      return true;
    },
  };
}

/** A document that is in another space and has no running job; otherwise null. */
async function findMovable(
  deps: Pick<MoveDeps, "store" | "jobs">,
  tenantId: string,
  { documentId, space }: { documentId: string; space: VectorSpace },
): Promise<DocumentRecord | null> {
  const found = await deps.store.documents.get(tenantId, documentId);
  if (!found || found.vectorSpace === toSpaceKey(space) || (await isAtWork(deps, found))) return null;
  return found;
}

/** Whether the document's own job has not ended. */
async function isAtWork({ jobs }: Pick<MoveDeps, "jobs">, { tenantId, jobId }: DocumentRecord): Promise<boolean> {
  const job = await jobs.find(tenantId, jobId);
  return job !== null && !isFinal(job.status);
}
