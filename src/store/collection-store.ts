import type { Db, Filter } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import type { CollectionNames } from "./collection-filter.ts";
import { findFirst, findPage, type Page, type PageQuery } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne, insertIfAbsent } from "./writes.ts";

/** A collection of documents, and what it is as a vector store of OpenAI's surface, where its id is the name. */
export type CollectionRecord = TenantOwned & {
  name: string;
  /** The name that its vector store shows. */
  label?: string;
  metadata?: Record<string, string>;
  /** Days after the last use after which it expires. */
  expiresAfterDays?: number;
  expireAt?: Date;
  lastActiveAt: Date;
  createdAt: Date;
  /** True once it is deleted, until all of its documents are gone. */
  isDeleting?: true;
  updatedAt: Date;
};

/** What a vector store's clients may change; null removes it. */
export type CollectionChange = {
  label?: string | null;
  metadata?: Record<string, string> | null;
  expiresAfterDays?: number | null;
};

export const collectionCollection = defineCollection<CollectionRecord>({
  name: "collections",
  indexes: [
    { name: "name", key: { tenantId: 1, name: 1 }, unique: true },
    { name: "tenant_newest", key: { tenantId: 1, _id: -1 } },
    { name: "deleting", key: { isDeleting: 1, updatedAt: 1 }, partialFilterExpression: { isDeleting: true } },
    { name: "expiring", key: { expireAt: 1 }, sparse: true },
  ],
});

const DAY_MS = 86_400_000;
const kept = { isDeleting: { $exists: false } } as const;

/** When a collection that is used now expires. */
const expiryOf = (days: number | undefined) =>
  days === undefined ? {} : { expireAt: new Date(Date.now() + days * DAY_MS) };

export function makeCollectionStore(db: Db) {
  const collections = db.collection<CollectionRecord>(collectionCollection.name);
  const { count, remove } = makeRecords(collections);
  const named = (tenantId: string, name: string) => ofTenant(tenantId, { name, ...kept });
  return {
    count,
    remove,
    /** Returns false if the tenant has a collection of this name, even one that is being deleted. */
    insert: (record: CollectionRecord) => insertIfAbsent(collections, record),
    /** The collection of this name, even while it is being deleted. */
    findAny: (tenantId: string, name: string) => collections.findOne(ofTenant(tenantId, { name })),
    /** Where a list continues after the collection of this name, even if that is gone. */
    placeOf: async (tenantId: string, name: string): Promise<string> =>
      (await collections.findOne(ofTenant(tenantId, { name })))?._id ?? name,
    /** The collections with these names that exist. */
    async known(tenantId: string, names: readonly string[]): Promise<string[]> {
      const filter = ofTenant(tenantId, { name: { $in: [...names] }, ...kept });
      const found = await collections
        .find(filter, { projection: { name: 1 } })
        .limit(names.length)
        .toArray();
      return found.map(({ name }) => name);
    },
    find: (tenantId: string, name: string): Promise<CollectionRecord | null> =>
      collections.findOne(named(tenantId, name)),
    list(
      tenantId: string,
      { names, ...page }: PageQuery & { names: CollectionNames },
    ): Promise<Page<CollectionRecord>> {
      const filter = (names === undefined ? kept : { ...kept, name: { $in: [...names] } }) as Filter<CollectionRecord>;
      return findPage(collections, { tenantId, page, filter });
    },
    /** Changes a collection, which counts as use. Returns null if it does not exist. */
    async change(tenantId: string, name: string, change: CollectionChange): Promise<CollectionRecord | null> {
      const fields = Object.entries(change);
      const set = Object.fromEntries(fields.filter(([, value]) => value !== null && value !== undefined));
      const gone = fields.filter(([, value]) => value === null);
      const unset = Object.fromEntries(gone.map(([field]) => [field, "" as const]));
      const { expiresAfterDays } = change;
      if (expiresAfterDays === null) unset.expireAt = "";
      const now = new Date();
      const about = { ...set, ...expiryOf(expiresAfterDays ?? undefined), lastActiveAt: now, updatedAt: now };
      const isEmpty = Object.keys(unset).length === 0;
      return changeOne(collections, named(tenantId, name), { $set: about, ...(isEmpty ? {} : { $unset: unset }) });
    },
    /** Notes that it is used now. */
    async use({ tenantId, name, expiresAfterDays }: CollectionRecord): Promise<void> {
      const now = new Date();
      const set = { lastActiveAt: now, updatedAt: now, ...expiryOf(expiresAfterDays) };
      await collections.updateOne(named(tenantId, name), { $set: set });
    },
    /** Moves a collection that is being deleted to the end of `deleting`. */
    async touch(tenantId: string, name: string): Promise<void> {
      await collections.updateOne(ofTenant(tenantId, { name }), { $set: { updatedAt: new Date() } });
    },
    /** Marks it as deleted; null when there is none. */
    beginDelete: (tenantId: string, name: string) =>
      changeOne(collections, named(tenantId, name), {
        $set: { isDeleting: true, updatedAt: new Date() },
        $unset: { expireAt: "" },
      }),
    /** Collections of all tenants whose deletion has not moved since `before`. */
    deleting: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(collections, { isDeleting: true, updatedAt: { $lt: before } }, { by: "updatedAt", limit }),
    /** Collections of all tenants that have expired. */
    expired: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(collections, { expireAt: { $lte: before }, ...kept }, { by: "expireAt", limit }),
  };
}
