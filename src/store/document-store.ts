import type { Db, Filter } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { ofTenant } from "./collection.ts";
import { type CollectionNames, inCollections } from "./collection-filter.ts";
import { type Description, type Publication, type Reassignment, refreshFields } from "./document-changes.ts";
import { makeDocumentGroups } from "./document-groups.ts";
import { type DocumentHeader, headerFields, type MoreOfHeader } from "./document-header.ts";
import { type DocumentMetadata, type DocumentRecord, documentCollection, ownSources } from "./document-record.ts";
import { makeDocumentSample } from "./document-sample.ts";
import { makeSpaceQueries } from "./document-spaces.ts";
import { type DocumentState, documentStatesBefore, pendingStates } from "./document-state.ts";
import { findFirst, findPage, type Page, type PageQuery, projectionOf, type Shown } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne, insertIfAbsent } from "./writes.ts";

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

/** What callers see of a document. */
export type ShownDocument = Shown<DocumentRecord, typeof shown>;

const toUnset = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [field, ""]));

/** Documents of one content that are looked at, to find an earlier one of the same collection. */
const MAX_ALIKE = 100;

/** Documents that are read at a time where each is looked at, so that other calls come between. */
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
  const change = (
    { tenantId, documentId, ...filter }: Filter<DocumentRecord> & { tenantId: string; documentId: string },
    set: Partial<DocumentRecord>,
    more: object = {},
  ) => {
    const there = { ...filter, ...ofTenant(tenantId, { _id: documentId }) };
    return changeOne(documents, there, { $set: { ...set, updatedAt: new Date() }, ...more });
  };
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
    /** False when the tenant has a document of the same URL. */
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
    headers: (
      tenantId: string,
      documentIds: readonly string[],
      more: readonly MoreOfHeader[] = [],
    ): Promise<DocumentHeader[]> => fieldsOf(tenantId, documentIds, [...headerFields, ...more]),
    /** What filters say of documents. */
    describedBy: (
      tenantId: string,
      documentIds: readonly string[],
    ): Promise<Pick<DocumentRecord, "_id" | "collection" | "metadata">[]> =>
      fieldsOf(tenantId, documentIds, ["collection", "metadata"]),
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
    /**
     * Gives the document to another job, as a re-ingest does, perhaps with another source. What queries see of it stays. Null
     * when it is gone, or with a source when it has another job by now.
     */
    async reassign(known: DocumentRecord, { sourceId, ...given }: Reassignment) {
      const { tenantId, _id: documentId, jobId } = known;
      const filter = { tenantId, documentId, ...(given.source ? { jobId } : {}) };
      const waiting = { status: { $in: documentStatesBefore("queued").concat("queued") } };
      const formerSources = given.source ? ownSources(known) : [];
      const set = {
        ...given,
        ...(sourceId === undefined ? {} : { sourceId }),
        ...(formerSources.length > 0 ? { formerSources } : {}),
      };
      const refresh = given.refreshEveryHours === undefined ? refreshFields : (["refreshFailures"] as const);
      const other = {
        ...{ urlHash: "", validators: "", ...toUnset(refresh) },
        ...(sourceId === undefined ? { sourceId: "" } : {}),
      };
      const cleared = { $unset: { error: "", ...(given.source ? other : {}) } };
      return (
        (await change({ ...filter, status: "indexed" }, set, cleared)) ??
        (await change({ ...filter, ...waiting }, { ...set, status: "queued" }, cleared))
      );
    },
    /** Changes what is said of it, not its text; null when it is gone. */
    describeOne: (tenantId: string, documentId: string, { set, unset }: Description) =>
      change(
        { tenantId, documentId, status: { $ne: "deleting" } },
        set,
        unset.length === 0 ? {} : { $unset: toUnset(unset) },
      ),
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
    /**
     * Moves the document to a version, unless it is gone or at a later one: then null, and nothing changes. A title that the
     * caller has given it stays.
     */
    async publish(tenantId: string, documentId: string, { type, title, duplicateOf, ...publication }: Publication) {
      const earlier = { status: { $in: documentStatesBefore("indexed") }, version: { $lt: publication.version } };
      const set = {
        ...publication,
        status: "indexed",
        "source.type": type,
        ...(duplicateOf === null ? {} : { duplicateOf }),
      } as const;
      const gone = { $unset: { error: "", ...(duplicateOf === null ? { duplicateOf: "" } : {}) } };
      const to = { tenantId, documentId, ...earlier };
      const isTitleGiven = { $ne: true };
      const titled = title !== undefined && (await change({ ...to, isTitleGiven }, { ...set, title }, gone));
      return titled || change(to, set, gone);
    },
    /** Notes that its former sources are gone, unless it has got others by now. */
    async forgetSources({ tenantId, _id: documentId, formerSources = [] }: DocumentRecord) {
      await change({ tenantId, documentId, formerSources }, {}, { $unset: { formerSources: "" } });
    },
    /** Notes why a job failed; `attempted`: the version of that attempt. A document that queries see stays `indexed`; one of another job or attempt is left alone. */
    async fail(
      tenantId: string,
      documentId: string,
      { jobId, error, attempted }: { jobId: string; error: ErrorView; attempted?: number },
    ) {
      const version = attempted === undefined ? {} : { version: { $lte: attempted } };
      const filter = { tenantId, documentId, jobId, ...version };
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
        { $unset: { urlHash: "", externalHash: "" } },
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
