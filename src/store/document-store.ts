import type { Collection, Db } from "mongodb";
import { ofTenant } from "./collection.ts";
import { type CollectionNames, inCollections } from "./collection-filter.ts";
import { makeDocumentChanges } from "./document-changes.ts";
import { makeDocumentGroups } from "./document-groups.ts";
import { type DocumentHeader, headerFields, type MoreOfHeader } from "./document-header.ts";
import { type DocumentMetadata, type DocumentRecord, documentCollection } from "./document-record.ts";
import { makeDocumentSample } from "./document-sample.ts";
import { makeSpaceQueries } from "./document-spaces.ts";
import { type DocumentState, pendingStates } from "./document-state.ts";
import { findFirst, findPage, type Page, type PageQuery, projectionOf, type Shown } from "./page.ts";
import { makeRecords } from "./records.ts";
import { insertIfAbsent } from "./writes.ts";

const shown = [
  "title",
  "collection",
  "externalId",
  "expiresAt",
  "refreshEveryHours",
  "refreshAt",
  "chunks",
  "createdAt",
  "updatedAt",
  "status",
  "source",
  "metadata",
  "jobId",
  "duplicateOf",
  "warnings",
  "requireComplete",
  "vectorSpace",
  "error",
] as const;

/** A document as callers see it. */
export type ShownDocument = Shown<DocumentRecord, typeof shown>;

/** Maximum documents with the same content that are compared to find an earlier one in the collection. */
const MAX_ALIKE = 100;

/** Documents read at a time if each of them must be examined, so that other calls come in between. */
const SCAN_BATCH = 500;

type TagSearch = {
  groups: readonly string[][];
  collections: CollectionNames;
  limit: number;
  /** What no index answers, and the documents that are looked at for it, at most. */
  scan?: { matches(metadata: DocumentMetadata): boolean; most: number };
};

type DocumentQuery = PageQuery & {
  status: DocumentState;
  title?: string | undefined;
  collections?: CollectionNames;
};

export function makeDocumentStore(db: Db) {
  const documents = db.collection<DocumentRecord>(documentCollection.name);
  return {
    /** Returns false if the tenant has a document with the same URL. */
    insert: (document: DocumentRecord) => insertIfAbsent(documents, document),
    get: (tenantId: string, documentId: string): Promise<DocumentRecord | null> =>
      documents.findOne(ofTenant(tenantId, { _id: documentId, status: { $ne: "deleting" as const } })),
    findByExternal: (tenantId: string, externalHash: string): Promise<DocumentRecord | null> =>
      documents.findOne(ofTenant(tenantId, { externalHash })),
    findByUrl: (tenantId: string, urlHash: string): Promise<DocumentRecord | null> =>
      documents.findOne(ofTenant(tenantId, { urlHash })),
    /** The oldest other indexed document of the same collection whose source has this hash; null if there is none. */
    async findByContent({ tenantId, _id, collection }: DocumentRecord, contentHash: string): Promise<string | null> {
      // By the hash alone, so that its index serves: few documents share one.
      const alike = documents.find(ofTenant(tenantId, { contentHash }), { limit: MAX_ALIKE });
      const shape = { _id: 1, status: 1, collection: 1 } as const;
      const found = await alike.project<Pick<DocumentRecord, "_id" | "status" | "collection">>(shape).toArray();
      const others = found.filter(
        (one) => one._id !== _id && one.status === "indexed" && one.collection === collection,
      );
      return others.map((one) => one._id).sort()[0] ?? null;
    },
    ...makeFieldReads(documents),
    /** Documents in a state; with a `title` those whose title holds this text, in any case. */
    list(tenantId: string, { status, title, collections, ...page }: DocumentQuery): Promise<Page<ShownDocument>> {
      const wanted = title?.toLowerCase();
      const matches =
        wanted === undefined ? undefined : (record: ShownDocument) => record.title.toLowerCase().includes(wanted);
      const filter = { status, ...inCollections(collections) };
      return findPage(documents, { tenantId, page, filter, fields: shown, matches });
    },
    /** How many documents are in a state. */
    count: (tenantId: string, status: DocumentState, collections?: CollectionNames) =>
      documents.countDocuments({ ...ofTenant(tenantId, { status }), ...inCollections(collections) }),
    ...makeDocumentGroups(documents),
    /** How many documents a tenant has; counts no further than `limit`. */
    countAll: makeRecords(documents).count,
    ...makeSpaceQueries(documents),
    ...makeDocumentSample(documents),
    ...makeDocumentChanges(documents),
    ...makeTagSearch(documents),
    /** Documents of all tenants that are being processed or deleted and have not changed since `before`, oldest first. */
    unfinished({ before, limit }: { before: Date; limit: number }) {
      const filter = { status: { $in: [...pendingStates, "deleting" as const] }, updatedAt: { $lt: before } };
      return findFirst(documents, filter, { by: "updatedAt", limit });
    },
  };
}

/** Reads some fields of documents that a search has found. */
function makeFieldReads(documents: Collection<DocumentRecord>) {
  /** Fields of those of the documents that are not being deleted. */
  const fieldsOf = <F extends keyof DocumentRecord>(
    tenantId: string,
    documentIds: readonly string[],
    fields: readonly F[],
  ) =>
    documents
      .find(ofTenant(tenantId, { _id: { $in: [...documentIds] }, status: { $ne: "deleting" as const } }))
      .project<Pick<DocumentRecord, "_id" | F>>(projectionOf(fields))
      .batchSize(documentIds.length + 1)
      .toArray();
  return {
    headers: (
      tenantId: string,
      documentIds: readonly string[],
      more: readonly MoreOfHeader[] = [],
    ): Promise<DocumentHeader[]> => fieldsOf(tenantId, documentIds, [...headerFields, ...more]),
    /** Collection and metadata of these documents, by which filters match them. */
    describedBy: (
      tenantId: string,
      documentIds: readonly string[],
    ): Promise<Pick<DocumentRecord, "_id" | "collection" | "metadata">[]> =>
      fieldsOf(tenantId, documentIds, ["collection", "metadata"]),
  };
}

function makeTagSearch(documents: Collection<DocumentRecord>) {
  return {
    /**
     * Ids of documents of these collections that have a tag of each group, at most `limit`. `isCut`: the scan ended before it
     * had looked at all of them.
     */
    async idsByTags(tenantId: string, { groups, collections, limit, scan }: TagSearch) {
      const tagged = groups.length === 0 ? {} : { $and: groups.map((tags) => ({ tags: { $in: tags } })) };
      const filter = { ...ofTenant(tenantId, tagged), ...inCollections(collections) };
      const [fields, most, batch] = scan
        ? ([{ metadata: 1 }, scan.most + 1, SCAN_BATCH] as const)
        : ([{ _id: 1 }, limit, limit] as const);
      type Found = Pick<DocumentRecord, "_id" | "metadata">;
      const ids: string[] = [];
      let read = 0;
      for await (const { _id, metadata } of documents
        .find(filter)
        .project<Found>(fields)
        .limit(most)
        .batchSize(batch)) {
        if (read === scan?.most) return { ids, isCut: true };
        read += 1;
        if (!scan || scan.matches(metadata)) ids.push(_id);
        if (ids.length === limit) break;
      }
      return { ids, isCut: false };
    },
  };
}
