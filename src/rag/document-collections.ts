import { LRUCache } from "lru-cache";
import { z } from "zod";
import { toView } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { idOfCall } from "../net/call-scope.ts";
import { DEFAULT_COLLECTION } from "../store/collection-filter.ts";
import type { CollectionChange, CollectionRecord } from "../store/collection-store.ts";
import { type DocumentTotals, emptyTotals, type TotalsQuery } from "../store/document-totals.ts";
import type { PageQuery } from "../store/page.ts";
import type { Caller } from "../tenancy/roles.ts";
import { mayUse } from "./collections.ts";
import type { RagDeps } from "./deps.ts";
import { removeDocument, unlessGone } from "./document-work.ts";
import { guardRead } from "./guard-document.ts";
import { findCollection, newCollection } from "./known-collections.ts";

/**
 * Maximum documents of a deleted collection that the call itself removes. The rest are hidden at once and removed by the next
 * sweeps.
 */
const REMOVED_AT_ONCE = 100;
const HIDDEN_AT_A_TIME = 500;
/** Maximum collections, and documents, of one sweep. */
const SWEPT = 20;
/** A deletion without progress for this time was interrupted, in ms. */
const CUT_AFTER_MS = 10_000;

export const collectionViewSchema = z.object({
  name: z.string(),
  documents: z.int().min(0).describe("Those that are indexed"),
  unfinished: z.int().min(0).describe("Documents that are being indexed, or could not be"),
  chunks: z.int().min(0),
  bytes: z.int().min(0).describe("Of the documents' sources; those of URLs do not count"),
  createdAt: z.iso.datetime().optional().describe("Absent of `default`"),
});

/** A tenant's collections of documents. */
export function makeDocumentCollections(deps: RagDeps) {
  const { documents, collections } = deps.store;
  const readTotals = makeReadTotals(deps);
  const hideAll = async (tenantId: string, name: string): Promise<void> => {
    while (await documents.beginDeleteSome(tenantId, name, HIDDEN_AT_A_TIME));
  };
  /** Ends a deletion if all documents are removed. */
  const finishDelete = async ({ tenantId, name, _id }: CollectionRecord): Promise<void> => {
    await hideAll(tenantId, name);
    if (await documents.hasAny(tenantId, name)) await collections.touch(tenantId, name);
    else await collections.remove(tenantId, _id);
  };
  return {
    totals: readTotals,
    /** @throws AppError `not_found`. */
    find: (caller: Pick<Caller, "tenantId" | "collections">, name: string) => findCollection(deps, caller, name),
    /** The newest first, `default` before all. */
    async list(caller: Caller, page: PageQuery) {
      const { tenantId, collections: names } = caller;
      const cursor = page.cursor && (await collections.placeOf(tenantId, page.cursor));
      const found = await collections.list(tenantId, { ...page, cursor, names });
      const totals = await readTotals(tenantId, { collections: names });
      const hasDefault = page.cursor === undefined && mayUse(caller, {});
      const data = found.data.map(({ name, createdAt }) => toCollectionView(name, totals, createdAt));
      const next = found.nextCursor === null ? null : (found.data.at(-1)?.name ?? null);
      return {
        data: [...(hasDefault ? [toCollectionView(DEFAULT_COLLECTION, totals)] : []), ...data],
        nextCursor: next,
      };
    },
    /** Makes an empty collection. @throws AppError `quota_exceeded`, `insufficient_scope`, `compliance_blocked`. */
    async create(caller: Caller, asked: CollectionChange): Promise<CollectionRecord> {
      const { tenantId, collections: limit } = caller;
      if (limit) throw new AppError("insufficient_scope", "This key is limited to collections that are there.");
      const change = await guardRead(deps, caller, asked);
      await deps.quotas.check(tenantId, "collections");
      const { _id, ...record } = { ...newCollection(tenantId, ""), _id: idOfCall("vectorStore").id };
      await collections.insert({ ...record, _id, name: _id });
      return (await collections.change(tenantId, _id, change)) ?? { ...record, _id, name: _id };
    },
    /** @throws AppError `not_found`, `compliance_blocked`. */
    async change(caller: Caller, name: string, change: CollectionChange): Promise<CollectionRecord> {
      await findCollection(deps, caller, name);
      const changed = await collections.change(caller.tenantId, name, await guardRead(deps, caller, change));
      if (!changed) throw notFound("vector store");
      return changed;
    },
    /**
     * Deletes a collection with its documents, which queries no longer see from now on.
     * @throws AppError `not_found`, `wrong_state`.
     */
    async remove(caller: Caller, name: string): Promise<void> {
      const { tenantId } = caller;
      if (name === DEFAULT_COLLECTION && mayUse(caller, {}))
        throw new AppError("wrong_state", "The collection default cannot be deleted; delete its documents.");
      if (!mayUse(caller, { collection: name })) throw notFound("collection");
      const record = await collections.beginDelete(tenantId, name);
      if (!record) throw notFound("collection");
      const first = await documents.someOf(tenantId, name, REMOVED_AT_ONCE);
      for (const { _id } of first) await unlessGone(removeDocument(deps, tenantId, _id));
      await finishDelete(record);
    },
    /** Finishes interrupted deletions, and deletes expired collections and documents. Run it on a schedule. */
    async sweep(): Promise<void> {
      const now = new Date();
      for (const { tenantId, _id } of await documents.expired({ before: now, limit: SWEPT }))
        await unlessGone(removeDocument(deps, tenantId, _id));
      for (const { tenantId, name } of await collections.expired({ before: now, limit: SWEPT }))
        await collections.beginDelete(tenantId, name);
      const before = new Date(now.getTime() - CUT_AFTER_MS);
      for (const record of await collections.deleting({ before, limit: SWEPT })) await finishDelete(record);
    },
  };
}

function toCollectionView(name: string, totals: DocumentTotals, createdAt?: Date) {
  const { counts, cancelled, chunks, bytes } = totals[name] ?? emptyTotals();
  const unfinished = counts.queued + counts.processing + counts.failed + cancelled;
  return toView({ name, documents: counts.indexed, unfinished, chunks, bytes, createdAt });
}

/** Totals of more documents than this are reused for a while: counting them takes the store some ms for each thousand. */
const MANY = 1_000;
/**
 * How long they are reused, as a multiple of the time they took, so that counting takes at most a tenth of the store's time.
 */
const REUSE = 10;
const MAX_KEPT = 1_000;

type ReadTotals = (tenantId: string, query: TotalsQuery) => Promise<DocumentTotals>;

/**
 * Makes the function that counts a tenant's documents by collection. Simultaneous calls for the same tenant share one count.
 */
function makeReadTotals({ store }: Pick<RagDeps, "store">): ReadTotals {
  const known = new LRUCache<string, Promise<DocumentTotals>>({ max: MAX_KEPT, ttl: 1 });
  const running = new Map<string, Promise<DocumentTotals>>();
  return (tenantId, query) => {
    const key = JSON.stringify([tenantId, query]);
    const count = async () => {
      const beganAt = performance.now();
      const { totals, read } = await store.documents.totals(tenantId, query);
      const ttl = REUSE * (performance.now() - beganAt);
      if (read > MANY) known.set(key, Promise.resolve(totals), { ttl });
      return totals;
    };
    const found = known.get(key) ?? running.get(key);
    if (found) return found;
    const counting = count().finally(() => running.delete(key));
    running.set(key, counting);
    return counting;
  };
}
