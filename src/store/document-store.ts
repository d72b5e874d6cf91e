import type { Db, Filter } from "mongodb";
import type { ErrorView } from "../errors.ts";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { type CollectionNames, inCollections } from "./collection-filter.ts";
import { makeSpaceQueries } from "./document-spaces.ts";
import { type DocumentState, documentStatesBefore, pendingStates } from "./document-state.ts";
import { findFirst, findPage, type Page, type PageQuery, type Shown } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne, insertIfAbsent } from "./writes.ts";

/** Facts about a document that queries can filter on. */
export type DocumentMetadata = Record<string, string | number | boolean>;

/** Where a document comes from. `bytes` is the size of what was given; a URL has none before it is fetched. */
export type DocumentSource = {
  kind: "url" | "content" | "file";
  url?: string;
  name?: string;
  type?: string;
  bytes?: number;
};

export type DocumentRecord = TenantDocument & {
  title: string;
  /** Absent in the collection `default`. */
  collection?: string;
  /** Whether the caller named it; else each reading of the source does. */
  isTitleGiven: boolean;
  source: DocumentSource;
  /** SHA-256 of the URL, with the collection, unique in a tenant: the same URL of a collection is the same document. */
  urlHash?: string;
  status: DocumentState;
  /** The version of the chunks that queries see; 0 before there is one. */
  version: number;
  /** The last version that was begun: every try of every job writes its own. */
  lastVersion: number;
  chunks: number;
  metadata: DocumentMetadata;
  /** The metadata as `key=json`, for an index on any of them. */
  tags: string[];
  error?: ErrorView;
  createdAt: Date;
  updatedAt: Date;
  /** The last job that was given the document. */
  jobId: string;
  /** The key by which it was ingested: model calls are counted to it. */
  keyId: string;
  /** SHA-256 of the source's bytes, of the version that queries see. */
  contentHash?: string;
  /** A document that had the same content when this one was indexed. */
  duplicateOf?: string;
  /** The space of its chunks' vectors, of the version that queries see; see `vector-space.ts`. */
  vectorSpace?: string;
};

export const documentCollection = defineCollection<DocumentRecord>({
  name: "documents",
  indexes: [
    {
      name: "url",
      key: { tenantId: 1, urlHash: 1 },
      unique: true,
      partialFilterExpression: { urlHash: { $exists: true } },
    },
    { name: "list", key: { tenantId: 1, status: 1, _id: -1 } },
    { name: "collection", key: { tenantId: 1, collection: 1, status: 1, _id: -1 } },
    { name: "tags", key: { tenantId: 1, tags: 1 } },
    { name: "content", key: { tenantId: 1, contentHash: 1 } },
    { name: "vectorSpace", key: { tenantId: 1, vectorSpace: 1, _id: 1 } },
    { name: "unfinished", key: { status: 1, updatedAt: 1 } },
  ],
});

const shown = [
  "title",
  "collection",
  "chunks",
  "createdAt",
  "updatedAt",
  "status",
  "source",
  "metadata",
  "jobId",
  "duplicateOf",
  "vectorSpace",
  "error",
] as const;

/** What callers see of a document. */
export type ShownDocument = Shown<DocumentRecord, typeof shown>;

/** What a query needs of the documents that it found. */
export type DocumentHeader = Pick<DocumentRecord, "_id" | "title" | "collection" | "version">;

export type Reassignment = Pick<DocumentRecord, "jobId" | "keyId"> &
  Partial<Pick<DocumentRecord, "title" | "metadata" | "tags">>;
export type Publication = Pick<DocumentRecord, "version" | "chunks"> & {
  type: string;
  title?: string;
  contentHash: string;
  vectorSpace: string;
  duplicateOf: string | null;
};

/** Documents of one content that are looked at, to find an earlier one of the same collection. */
const MAX_ALIKE = 100;

type DocumentQuery = PageQuery & {
  status: DocumentState;
  title?: string | undefined;
  collections?: CollectionNames;
};

/** The driver's types cannot say that null matches what has no such field. */
const within = (collections: CollectionNames) => inCollections(collections) as Filter<DocumentRecord>;

export function makeDocumentStore(db: Db) {
  const documents = db.collection<DocumentRecord>(documentCollection.name);
  const change = (
    { tenantId, documentId, ...filter }: Filter<DocumentRecord> & { tenantId: string; documentId: string },
    set: Partial<DocumentRecord>,
    more: object = {},
  ) => {
    const there = { ...filter, ...ofTenant(tenantId, { _id: documentId }) };
    return changeOne(documents, there, { $set: { ...set, updatedAt: new Date() }, ...more });
  };

  return {
    /** False when the tenant has a document of the same URL. */
    insert: (document: DocumentRecord) => insertIfAbsent(documents, document),
    get: (tenantId: string, documentId: string): Promise<DocumentRecord | null> =>
      documents.findOne(ofTenant(tenantId, { _id: documentId, status: { $ne: "deleting" as const } })),
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
    headers: (tenantId: string, documentIds: readonly string[]): Promise<DocumentHeader[]> =>
      documents
        .find(ofTenant(tenantId, { _id: { $in: [...documentIds] }, status: { $ne: "deleting" as const } }))
        .project<DocumentHeader>({ title: 1, collection: 1, version: 1 })
        .batchSize(documentIds.length + 1)
        .toArray(),
    /** Documents in a state; with a `title` those whose title holds this text, in any case. */
    list(tenantId: string, { status, title, collections, ...page }: DocumentQuery): Promise<Page<ShownDocument>> {
      const wanted = title?.toLowerCase();
      const matches =
        wanted === undefined ? undefined : (record: ShownDocument) => record.title.toLowerCase().includes(wanted);
      const filter = { status, ...within(collections) };
      return findPage(documents, { tenantId, page, filter, fields: shown, matches });
    },
    /** How many documents are in a state. */
    count: (tenantId: string, status: DocumentState, collections?: CollectionNames) =>
      documents.countDocuments({ ...ofTenant(tenantId, { status }), ...within(collections) }),
    /** How many documents a tenant has; counts no further than `limit`. */
    countAll: makeRecords(documents).count,
    ...makeSpaceQueries(documents),
    /** Ids of documents of these collections that have a tag of each group, at most `limit`. */
    async idsByTags(
      tenantId: string,
      { groups, collections, limit }: { groups: readonly string[][]; collections: CollectionNames; limit: number },
    ): Promise<string[]> {
      const tagged = { $and: groups.map((tags) => ({ tags: { $in: tags } })) };
      const filter = { ...ofTenant(tenantId, tagged), ...within(collections) };
      const found = await documents.find(filter).project<{ _id: string }>({ _id: 1 }).limit(limit).toArray();
      return found.map(({ _id }) => _id);
    },
    /** Gives the document to another job, as a re-ingest does. What queries see of it stays. Null when it is gone. */
    async reassign(tenantId: string, documentId: string, set: Reassignment) {
      const filter = { tenantId, documentId };
      const waiting = { status: { $in: documentStatesBefore("queued").concat("queued") } };
      const cleared = { $unset: { error: "" } };
      return (
        (await change({ ...filter, status: "indexed" }, set, cleared)) ??
        (await change({ ...filter, ...waiting }, { ...set, status: "queued" }, cleared))
      );
    },
    /** Begins a version: the next number is this attempt's own. Null when the document is gone. */
    async beginVersion(tenantId: string, documentId: string) {
      const filter = { tenantId, documentId };
      const pending = { status: { $in: documentStatesBefore("processing") } };
      const next = { $inc: { lastVersion: 1 } };
      return (
        (await change({ ...filter, ...pending }, { status: "processing" }, next)) ??
        (await change({ ...filter, status: "indexed" }, {}, next))
      );
    },
    /** Moves the document to a version, unless it is gone or at a later one: then null, and nothing changes. */
    publish(tenantId: string, documentId: string, { type, title, duplicateOf, ...publication }: Publication) {
      const earlier = { status: { $in: documentStatesBefore("indexed") }, version: { $lt: publication.version } };
      const set = {
        ...publication,
        status: "indexed",
        "source.type": type,
        ...(title === undefined ? {} : { title }),
        ...(duplicateOf === null ? {} : { duplicateOf }),
      } as const;
      const gone = { error: "", ...(duplicateOf === null ? { duplicateOf: "" } : {}) };
      return change({ tenantId, documentId, ...earlier }, set, { $unset: gone });
    },
    /** Notes why a job failed. A document that queries see stays `indexed`; another job's document is left alone. */
    async fail(tenantId: string, documentId: string, { jobId, error }: { jobId: string; error: ErrorView }) {
      const filter = { tenantId, documentId, jobId };
      const failed = await change({ ...filter, status: { $in: [...pendingStates] } }, { status: "failed", error });
      if (!failed) await change({ ...filter, status: "indexed" }, { error });
    },
    /** Fails a document that no query sees, if nothing happened to it since it was read; returns whether it did. */
    async abandon({ tenantId, _id: documentId, jobId, lastVersion, updatedAt }: DocumentRecord, error: ErrorView) {
      const unchanged = { tenantId, documentId, jobId, lastVersion, updatedAt, version: 0 };
      const failed = await change({ ...unchanged, status: { $in: [...pendingStates] } }, { status: "failed", error });
      return failed !== null;
    },
    /** Hides the document for good. Null when it is gone. */
    beginDelete: (tenantId: string, documentId: string) =>
      change(
        { tenantId, documentId, status: { $in: documentStatesBefore("deleting") } },
        { status: "deleting" },
        { $unset: { urlHash: "" } },
      ),
    /** Drops what `beginDelete` left. */
    async drop(tenantId: string, documentId: string) {
      await documents.deleteOne(ofTenant(tenantId, { _id: documentId, status: "deleting" as const }));
    },
    /** Over all tenants: documents in work or in deletion that nothing has happened to since `before`, oldest first. */
    unfinished({ before, limit }: { before: Date; limit: number }) {
      const filter = { status: { $in: [...pendingStates, "deleting" as const] }, updatedAt: { $lt: before } };
      return findFirst(documents, filter, { by: "updatedAt", limit });
    },
    /** Marks an unfinished document as looked at, so that the next look takes others first. */
    async touch(tenantId: string, documentId: string): Promise<void> {
      await change({ tenantId, documentId }, {});
    },
  };
}
