import { mayUse } from "../rag/collections.ts";
import { DEFAULT_COLLECTION } from "../store/collection-filter.ts";
import type { CollectionChange, CollectionRecord } from "../store/collection-store.ts";
import { emptyTotals } from "../store/document-totals.ts";
import type { PageQuery } from "../store/page.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { VectorStoreDeps } from "./deps.ts";
import { makeVectorFileBatches } from "./file-batches.ts";
import { makeSearch } from "./search.ts";
import { makeStoreFiles } from "./store-files.ts";
import { toVectorStore } from "./views.ts";

export type VectorStores = ReturnType<typeof makeVectorStores>;

/** OpenAI's vector stores: each is a collection of documents, and the name of that is its id. */
export function makeVectorStores(deps: VectorStoreDeps) {
  const { store, rag } = deps;
  const { collections } = rag;
  const files = makeStoreFiles(deps);
  const fileBatches = makeVectorFileBatches({ ...deps, files });
  const toView = async (record: CollectionRecord) => {
    const totals = await collections.totals(record.tenantId, { collections: [record.name] });
    return toVectorStore(record, totals[record.name] ?? emptyTotals());
  };
  return {
    files,
    fileBatches,
    ...makeSearch(deps),
    /** @throws AppError `quota_exceeded`, `insufficient_scope`; `not_found` for a file. */
    async create(caller: Caller, change: CollectionChange, fileIds: readonly string[]) {
      const given = fileIds.map((fileId) => ({ fileId }));
      const items = given.length > 0 ? await fileBatches.check(caller, given) : [];
      const record = await collections.create(caller, change);
      if (items.length > 0) await fileBatches.begin(caller, record.name, items);
      return toView(record);
    },
    get: async (caller: Caller, name: string) => toView(await collections.find(caller, name)),
    update: async (caller: Caller, name: string, change: CollectionChange) =>
      toView(await collections.change(caller, name, change)),
    /** `default` before all, then the newest first. */
    async list(caller: Caller, { cursor, limit, isAscending }: PageQuery & { isAscending?: boolean }) {
      const { tenantId, collections: names } = caller;
      const isFirst = cursor === undefined && mayUse(caller, {});
      const standard = isFirst ? [await collections.find(caller, DEFAULT_COLLECTION)] : [];
      const after = cursor && cursor !== DEFAULT_COLLECTION && (await store.collections.placeOf(tenantId, cursor));
      const place = isAscending ? { newerThan: after || "vs_" } : { cursor: after || undefined };
      const room = limit - standard.length;
      const found = await store.collections.list(tenantId, { limit: Math.max(1, room), ...place, names });
      const others = room > 0 ? found.data : [];
      const stored = [...standard, ...(isAscending ? others.toReversed() : others)];
      const totals = await collections.totals(tenantId, { collections: stored.map(({ name }) => name) });
      const data = stored.map((record) => toVectorStore(record, totals[record.name] ?? emptyTotals()));
      const isEnd = room > 0 ? found.nextCursor === null : found.data.length === 0;
      return { data, nextCursor: isEnd ? null : (stored.at(-1)?.name ?? null) };
    },
    /** Deletes a store with its documents; the files stay. @throws AppError `not_found`, `wrong_state`. */
    async remove(caller: Caller, name: string): Promise<void> {
      await collections.find(caller, name);
      await collections.remove(caller, name);
      await fileBatches.removeOf(caller.tenantId, name);
    },
    /** Continues batches of files, and removes files that have expired. Run it on a schedule. */
    async sweep(): Promise<void> {
      await fileBatches.sweep();
      await files.sweepExpired();
    },
  };
}
