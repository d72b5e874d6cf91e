import { AppError } from "../lib/errors.ts";
import type { VectorStoreBatch } from "../store/vector-store-batch-store.ts";
import { fromStoredCaller } from "../tenancy/roles.ts";
import type { VectorStoreDeps } from "./deps.ts";
import type { StoreFiles } from "./store-files.ts";
import { touch } from "./touch.ts";

/** Batches that one sweep continues, and how long after their last file, in ms. */
const SWEPT = 10;
const CUT_AFTER_MS = 15_000;

/**
 * Gives each file of a batch its document and job, and continues where a process has died or a tenant was at a limit: a file
 * that is in the store already is the same document.
 */
export function makeFillBatch({ store, logger, files }: VectorStoreDeps & { files: StoreFiles }) {
  const { vectorStoreBatches: batches, collections } = store;
  const addFiles = async (batch: VectorStoreBatch): Promise<void> => {
    const { tenantId, collection: name, _id: batchId } = batch;
    const caller = fromStoredCaller(tenantId, batch.caller);
    for (const [place, item] of batch.items.entries()) {
      if (place < batch.added) continue;
      try {
        await files.take(caller, name, { ...item, batchId });
      } catch (error) {
        if (!(error instanceof AppError) || error.retryable) throw error;
        // The file, or the store, is gone: the others go on, and this one counts as cancelled.
      }
      if (!(await batches.advance(batch, place))) return;
    }
    const collection = await collections.find(tenantId, name);
    if (collection) await touch({ store }, collection);
    await batches.close(batch);
  };
  /** Adds the files that are not in the store yet. Where one cannot be added now, a later sweep continues. */
  const fill = (batch: VectorStoreBatch): Promise<void> =>
    addFiles(batch).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      const { tenantId, _id: batchId } = batch;
      logger.warn({ err: error, tenantId, batchId }, "a batch of files waits; a later sweep continues it");
    });
  return {
    fill,
    /** Continues batches that wait, or whose process has died. Any number of processes may run it, on a schedule. */
    async sweep(): Promise<void> {
      const before = new Date(Date.now() - CUT_AFTER_MS);
      for (const batch of await batches.unfinished({ before, limit: SWEPT })) {
        // A claimed batch comes after all others in the next sweep, so one whose tenant is at a limit delays no other.
        const claimed = await batches.claim(batch);
        if (claimed) await fill(claimed);
      }
    },
  };
}
