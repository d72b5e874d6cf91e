import type { Db, Filter } from "mongodb";
import type { ErrorView } from "../errors.ts";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { type DocumentState, documentStatesBefore, pendingStates } from "./document-state.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { insertIfAbsent } from "./writes.ts";

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
  /** Whether the caller named it; else each reading of the source does. */
  isTitleGiven: boolean;
  source: DocumentSource;
  /** SHA-256 of the URL, unique in a tenant: the same URL is the same document. */
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
    { name: "tags", key: { tenantId: 1, tags: 1 } },
    { name: "content", key: { tenantId: 1, contentHash: 1 } },
    { name: "unfinished", key: { status: 1, updatedAt: 1 } },
  ],
});

/** What callers see of a document. */
export type ShownDocument = Pick<
  DocumentRecord,
  | "_id"
  | "title"
  | "chunks"
  | "createdAt"
  | "updatedAt"
  | "status"
  | "source"
  | "metadata"
  | "jobId"
  | "duplicateOf"
  | "error"
>;

const shownFields = {
  title: 1,
  chunks: 1,
  createdAt: 1,
  updatedAt: 1,
  status: 1,
  source: 1,
  metadata: 1,
  jobId: 1,
  duplicateOf: 1,
  error: 1,
} as const;

/** What a query needs of the documents that it found. */
export type DocumentFace = Pick<DocumentRecord, "_id" | "title" | "version">;

export type DocumentStore = {
  /** @returns false when the tenant has a document of the same URL. */
  insert(document: DocumentRecord): Promise<boolean>;
  get(tenantId: string, documentId: string): Promise<DocumentRecord | null>;
  findByUrl(tenantId: string, urlHash: string): Promise<DocumentRecord | null>;
  /** The oldest indexed document, other than `documentId`, whose source has this hash; null if there is none. */
  findByContent(tenantId: string, contentHash: string, documentId: string): Promise<string | null>;
  faces(tenantId: string, documentIds: readonly string[]): Promise<DocumentFace[]>;
  /** Documents in a state. */
  list(tenantId: string, query: PageQuery & { status: DocumentState }): Promise<Page<ShownDocument>>;
  /** How many documents are in a state. */
  count(tenantId: string, status: DocumentState): Promise<number>;
  /** Ids of documents that have a tag of each group, at most `limit`. */
  idsByTags(tenantId: string, groups: readonly string[][], limit: number): Promise<string[]>;
  /** Gives the document to another job, as a re-ingest does. What queries see of it stays. Null when it is gone. */
  reassign(tenantId: string, documentId: string, change: Reassignment): Promise<DocumentRecord | null>;
  /** Begins a version: the next number is this try's own. Null when the document is gone. */
  beginVersion(tenantId: string, documentId: string): Promise<DocumentRecord | null>;
  /** Moves the document to a version, unless it is gone or at a later one: then null, and nothing changes. */
  publish(tenantId: string, documentId: string, change: Publication): Promise<DocumentRecord | null>;
  /** Notes why a job failed. A document that queries see stays `indexed`; another job's document is left alone. */
  fail(tenantId: string, documentId: string, failure: { jobId: string; error: ErrorView }): Promise<void>;
  /** Fails a document that no query sees, if nothing happened to it since it was read; answers whether it did. */
  abandon(document: DocumentRecord, error: ErrorView): Promise<boolean>;
  /** Takes the document out of sight, for good. Null when it is gone. */
  beginDelete(tenantId: string, documentId: string): Promise<DocumentRecord | null>;
  /** Drops what `beginDelete` left. */
  drop(tenantId: string, documentId: string): Promise<void>;
  /** Over all tenants: documents in work or in deletion that nothing has happened to since `before`, oldest first. */
  unfinished(query: { before: Date; limit: number }): Promise<DocumentRecord[]>;
  /** Marks an unfinished document as looked at, so that the next look takes others first. */
  touch(tenantId: string, documentId: string): Promise<void>;
};

export type Reassignment = Pick<DocumentRecord, "jobId" | "keyId"> &
  Partial<Pick<DocumentRecord, "title" | "metadata" | "tags">>;
export type Publication = Pick<DocumentRecord, "version" | "chunks"> & {
  type: string;
  title?: string;
  contentHash: string;
  duplicateOf: string | null;
};

export function makeDocumentStore(db: Db): DocumentStore {
  const documents = db.collection<DocumentRecord>(documentCollection.name);
  const change = (filter: Filter<DocumentRecord>, set: Partial<DocumentRecord>, more: object = {}) =>
    documents.findOneAndUpdate(
      filter,
      { $set: { ...set, updatedAt: new Date() }, ...more },
      { returnDocument: "after" },
    );
  const visible = (tenantId: string, documentId: string) => ofTenant(tenantId, { _id: documentId });

  return {
    insert: (document) => insertIfAbsent(documents, document),
    get: (tenantId, documentId) => documents.findOne({ ...visible(tenantId, documentId), status: { $ne: "deleting" } }),
    findByUrl: (tenantId, urlHash) => documents.findOne(ofTenant(tenantId, { urlHash })),
    async findByContent(tenantId, contentHash, documentId) {
      const filter = { ...ofTenant(tenantId, { contentHash, status: "indexed" as const }), _id: { $ne: documentId } };
      const [first] = await documents
        .find(filter)
        .sort({ _id: 1 })
        .limit(1)
        .project<{ _id: string }>({ _id: 1 })
        .toArray();
      return first?._id ?? null;
    },
    faces: (tenantId, documentIds) =>
      documents
        .find({ ...ofTenant(tenantId), _id: { $in: [...documentIds] }, status: { $ne: "deleting" } })
        .project<DocumentFace>({ title: 1, version: 1 })
        .batchSize(documentIds.length + 1)
        .toArray(),
    list: (tenantId, { status, ...page }) =>
      findPage(documents, { tenantId, page, filter: { status }, fields: shownFields }),
    count: (tenantId, status) => documents.countDocuments(ofTenant(tenantId, { status })),
    idsByTags: async (tenantId, groups, limit) => {
      const filter = { ...ofTenant(tenantId), $and: groups.map((tags) => ({ tags: { $in: tags } })) };
      const found = await documents.find(filter).project<{ _id: string }>({ _id: 1 }).limit(limit).toArray();
      return found.map(({ _id }) => _id);
    },
    async reassign(tenantId, documentId, set) {
      const filter = visible(tenantId, documentId);
      const waiting = { status: { $in: documentStatesBefore("queued").concat("queued") } };
      return (
        (await change({ ...filter, status: "indexed" }, set, { $unset: { error: "" } })) ??
        (await change({ ...filter, ...waiting }, { ...set, status: "queued" }, { $unset: { error: "" } }))
      );
    },
    async beginVersion(tenantId, documentId) {
      const filter = visible(tenantId, documentId);
      const next = { $inc: { lastVersion: 1 } };
      return (
        (await change(
          { ...filter, status: { $in: documentStatesBefore("processing") } },
          { status: "processing" },
          next,
        )) ?? (await change({ ...filter, status: "indexed" }, {}, next))
      );
    },
    publish(tenantId, documentId, { version, chunks, type, title, contentHash, duplicateOf }) {
      const filter = {
        ...visible(tenantId, documentId),
        status: { $in: documentStatesBefore("indexed") },
        version: { $lt: version },
      };
      const set = {
        status: "indexed",
        version,
        chunks,
        "source.type": type,
        contentHash,
        ...(title === undefined ? {} : { title }),
        ...(duplicateOf === null ? {} : { duplicateOf }),
      } as const;
      return change(filter, set, { $unset: { error: "", ...(duplicateOf === null ? { duplicateOf: "" } : {}) } });
    },
    async fail(tenantId, documentId, { jobId, error }) {
      const filter = { ...visible(tenantId, documentId), jobId };
      const failed = await change({ ...filter, status: { $in: [...pendingStates] } }, { status: "failed", error });
      if (!failed) await change({ ...filter, status: "indexed" }, { error });
    },
    async abandon({ tenantId, _id, jobId, lastVersion, updatedAt }, error) {
      const unchanged = { ...visible(tenantId, _id), jobId, lastVersion, updatedAt, version: 0 };
      const failed = await change({ ...unchanged, status: { $in: [...pendingStates] } }, { status: "failed", error });
      return failed !== null;
    },
    beginDelete: (tenantId, documentId) =>
      change(
        { ...visible(tenantId, documentId), status: { $in: documentStatesBefore("deleting") } },
        { status: "deleting" },
        { $unset: { urlHash: "" } },
      ),
    drop: async (tenantId, documentId) => {
      await documents.deleteOne({ ...visible(tenantId, documentId), status: "deleting" });
    },
    unfinished: ({ before, limit }) =>
      documents
        .find({ status: { $in: [...pendingStates, "deleting"] }, updatedAt: { $lt: before } })
        .sort({ updatedAt: 1 })
        .limit(limit)
        .toArray(),
    touch: async (tenantId, documentId) => {
      await change(visible(tenantId, documentId), {});
    },
  };
}
