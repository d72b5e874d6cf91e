import type { Document, IndexDescription } from "mongodb";

/** One declared index (its key and options); created at start, never by hand. */
export type IndexDeclaration = IndexDescription & { key: Record<string, 1 | -1 | "text"> };

/** A search index (Atlas, Atlas Local and the embedded server have them). */
export type SearchIndexDeclaration = { name: string; type: "vectorSearch" | "search"; definition: Document };

/** What a store file declares of its collection: the name, its indexes, and whether its documents belong to a tenant. */
type CollectionDeclaration<_T extends Document> = {
  name: string;
  indexes: readonly IndexDeclaration[];
  searchIndexes?: readonly SearchIndexDeclaration[];
};

/** Declares a collection. `T` is the shape of its documents and travels with the declaration. */
export function defineCollection<T extends Document>(declaration: CollectionDeclaration<T>): CollectionDeclaration<T> {
  return declaration;
}

/** A document that belongs to a tenant. */
export type TenantOwned = { _id: string; tenantId: string };

/** The collection's filter for one tenant: the tenant's id cannot be left out, nor overridden by `filter`. */
export function ofTenant<F extends object>(tenantId: string, filter?: F): F & { tenantId: string } {
  if (tenantId.length === 0) throw new TypeError("A query on tenant data needs the tenant's id");
  return { ...(filter ?? ({} as F)), tenantId }; // an absent filter is the empty one of the same type
}

/** What a MongoDB server can do, found out at start. */
export type StoreCapabilities = {
  /** Whether the server has vector search indexes. */
  vectorSearch: boolean;
  /** Whether the server has `$search`. */
  textSearch: boolean;
  /** Whether a search may miss what was written a moment ago. */
  searchLag: "none" | "eventual";
};
