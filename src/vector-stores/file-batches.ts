import { defined } from "../defined.ts";
import { AppError, notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import { emptyTotals } from "../rag/collection-totals.ts";
import type { PageQuery } from "../store/page.ts";
import type { VectorStoreBatch } from "../store/vector-store-batch-store.ts";
import { type Caller, fromStoredCaller, toStoredCaller } from "../tenancy/roles.ts";
import type { FileState } from "./schemas.ts";
import type { NewStoreFile, StoreFiles, VectorStoreDeps } from "./store-files.ts";
import { toFileBatch } from "./views.ts";

/** How long a batch can be read, in ms: as OpenAI's, seven days. */
const KEEP_MS = 7 * 86_400_000;
/** Batches that one sweep continues, and how long after their last file, in ms. */
const SWEPT = 10;
const CUT_AFTER_MS = 15_000;
const PAGE = 100;

/**
 * Batches of files. The batch is recorded first; then each file gets its document and job, which a sweep continues where a
 * process has died: a file that is in the store already is the same document.
 */
export function makeVectorFileBatches(deps: VectorStoreDeps & { files: StoreFiles }) {
  const { store, rag, files, quotas } = deps;
  const { vectorStoreBatches: batches } = store;
  const find = async (caller: Caller, name: string, id: string) => {
    await rag.collections.find(caller, name);
    const batch = await batches.get(caller.tenantId, id);
    if (!batch || batch.collection !== name) throw notFound("file batch");
    return batch;
  };
  const toView = async (batch: VectorStoreBatch) => {
    const query = { collections: [batch.collection], fileBatchId: batch._id };
    const totals = await rag.collections.totals(batch.tenantId, query);
    return toFileBatch(batch, totals[batch.collection] ?? emptyTotals());
  };
  const addFiles = async (batch: VectorStoreBatch): Promise<void> => {
    const caller = fromStoredCaller(batch.tenantId, batch.caller);
    for (const [place, item] of batch.items.entries()) {
      if (place < batch.added) continue;
      try {
        await files.add(caller, batch.collection, { ...item, batchId: batch._id });
      } catch (error) {
        if (!(error instanceof AppError) || error.retryable) throw error;
        // The file, or the store, is gone: the others go on, and this one counts as cancelled.
      }
      if (!(await batches.add(batch, place + 1))) return;
    }
    await batches.close(batch);
  };
  return {
    /** @throws AppError `not_found` for a store or file that is not there; `quota_exceeded`. */
    async create(caller: Caller, name: string, given: readonly NewStoreFile[]) {
      await rag.collections.find(caller, name);
      const items = [
        ...new Map(given.map(({ fileId, attributes }) => [fileId, { fileId, ...defined({ attributes }) }])).values(),
      ];
      for (const { fileId } of items) await files.findFile(caller, fileId);
      await quotas.check(caller.tenantId, "vectorStoreBatches");
      const batch = newBatch(caller, name, items);
      await batches.insert(batch);
      await addFiles(batch);
      return toView((await batches.get(caller.tenantId, batch._id)) ?? batch);
    },
    get: async (caller: Caller, name: string, id: string) => toView(await find(caller, name, id)),
    async listFiles(
      caller: Caller,
      {
        name,
        id,
        ...page
      }: PageQuery & { name: string; id: string; filter?: FileState | undefined; isAscending?: boolean },
    ) {
      await find(caller, name, id);
      return files.list(caller, name, { ...page, batchId: id });
    },
    /** Stops what is not indexed yet. @throws AppError `not_found`. */
    async cancel(caller: Caller, name: string, id: string) {
      const batch = await find(caller, name, id);
      const { tenantId } = caller;
      const cancelled = (await batches.cancel(tenantId, id)) ?? batch;
      const states = ["queued", "processing"] as const;
      let cursor: string | undefined;
      do {
        const asked = { name, fileBatchId: id, states, limit: PAGE, cursor };
        const { data, nextCursor } = await store.documents.listFiles(tenantId, asked);
        for (const document of data) await files.stop(document);
        cursor = nextCursor ?? undefined;
      } while (cursor !== undefined);
      return toView(cancelled);
    },
    removeOf: batches.removeOf,
    /** Continues batches whose process has died. Run it on a schedule. */
    async sweep(): Promise<void> {
      const before = new Date(Date.now() - CUT_AFTER_MS);
      for (const batch of await batches.unfinished({ before, limit: SWEPT })) await addFiles(batch);
    },
  };
}

function newBatch(caller: Caller, collection: string, items: VectorStoreBatch["items"]): VectorStoreBatch {
  const now = new Date();
  return {
    _id: newId("vectorStoreBatch"),
    tenantId: caller.tenantId,
    collection,
    caller: toStoredCaller(caller),
    items,
    added: 0,
    isOpen: true,
    createdAt: now,
    updatedAt: now,
    expireAt: new Date(now.getTime() + KEEP_MS),
  };
}
