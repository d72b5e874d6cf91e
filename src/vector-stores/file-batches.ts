import { defined } from "../lib/defined.ts";
import { notFound } from "../lib/errors.ts";
import { idOfCall } from "../net/call-scope.ts";
import { emptyTotals } from "../store/document-totals.ts";
import type { PageQuery } from "../store/page.ts";
import type { VectorStoreBatch } from "../store/vector-store-batch-store.ts";
import { type Caller, toStoredCaller } from "../tenancy/roles.ts";
import type { VectorStoreDeps } from "./deps.ts";
import { makeFillBatch } from "./fill-batch.ts";
import type { FileState } from "./schemas.ts";
import type { NewStoreFile, StoreFiles } from "./store-files.ts";
import { toFileBatch } from "./views.ts";

/** How long a batch can be read, in ms: as OpenAI's, seven days. */
const KEEP_MS = 7 * 86_400_000;
const PAGE = 100;

type BatchItems = VectorStoreBatch["items"];

/** Batches of files. The batch is recorded first; then each file gets its document and job. */
export function makeVectorFileBatches(deps: VectorStoreDeps & { files: StoreFiles }) {
  const { store, rag, files, quotas } = deps;
  const { vectorStoreBatches: batches } = store;
  const { fill, sweep } = makeFillBatch(deps);
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
  /** The files of a batch that may be made. @throws AppError `not_found` for one that is not there; `quota_exceeded`. */
  const check = async (caller: Caller, given: readonly NewStoreFile[]): Promise<BatchItems> => {
    const items = new Map(given.map(({ fileId, attributes }) => [fileId, { fileId, ...defined({ attributes }) }]));
    await files.requireAll(caller, [...items.keys()]);
    await quotas.check(caller.tenantId, "vectorStoreBatches");
    return [...items.values()];
  };
  /** Records a batch, and adds its files. Those that cannot be added now are added by a later sweep. */
  const begin = async (caller: Caller, name: string, items: BatchItems) => {
    const { id, mayBeThere } = idOfCall("vectorStoreBatch");
    const made = mayBeThere ? await batches.get(caller.tenantId, id) : null;
    const batch = made ?? { ...newBatch(caller, name, items), _id: id };
    if (!made) await batches.insert(batch);
    await fill(batch);
    return toView((await batches.get(caller.tenantId, batch._id)) ?? batch);
  };
  return {
    check,
    begin,
    /** @throws AppError `not_found` for a store or file that is not there; `quota_exceeded`. */
    async create(caller: Caller, name: string, given: readonly NewStoreFile[]) {
      await rag.collections.find(caller, name);
      return begin(caller, name, await check(caller, given));
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
    sweep,
  };
}

function newBatch(caller: Caller, collection: string, items: BatchItems): Omit<VectorStoreBatch, "_id"> {
  const now = new Date();
  return {
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
