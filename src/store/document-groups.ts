import type { Collection, Filter } from "mongodb";
import { ofTenant } from "./collection.ts";
import { type CollectionNames, inCollections } from "./collection-filter.ts";
import type { DocumentRecord } from "./document-record.ts";
import { type DocumentState, documentStatesBefore } from "./document-state.ts";
import { countDocuments, type TotalsQuery } from "./document-totals.ts";
import { findFirst, findPage, type Page, type PageQuery } from "./page.ts";
import { updateIf } from "./writes.ts";

const alive = { $ne: "deleting" as const };

export type DescribedDocument = Pick<DocumentRecord, "_id" | "title" | "fileId" | "source" | "metadata">;

type FilesQuery = PageQuery & {
  name: string;
  fileBatchId?: string | undefined;
  states?: readonly DocumentState[] | undefined;
  /** Splits the failed documents: cancelled jobs, or all others. */
  isCancelled?: boolean | undefined;
};

/** What concerns the documents of a collection, of a file or of a batch of files. */
export function makeDocumentGroups(documents: Collection<DocumentRecord>) {
  return {
    /** Documents by collection and state. */
    totals: (tenantId: string, query: TotalsQuery) => countDocuments(documents, tenantId, query),
    /** Documents of a file, in any collection or in one; at most `limit`. */
    ofFile: (
      tenantId: string,
      fileId: string,
      { collections, limit }: { collections?: CollectionNames; limit: number },
    ) =>
      documents
        .find({ ...ofTenant(tenantId, { fileId, status: alive }), ...inCollections(collections) }, { limit })
        .toArray(),
    /** Documents of files, of a collection or of a batch of files, newest first, in one of these states. */
    listFiles(
      tenantId: string,
      { name, fileBatchId, states, isCancelled, ...page }: FilesQuery,
    ): Promise<Page<DocumentRecord>> {
      const cancelled =
        isCancelled === undefined ? {} : { "error.code": isCancelled ? "cancelled" : { $ne: "cancelled" } };
      const filter = {
        ...inCollections([name]),
        fileId: { $exists: true },
        status: states === undefined ? alive : { $in: [...states] },
        ...cancelled,
        ...(fileBatchId === undefined ? {} : { fileBatchId }),
      } as Filter<DocumentRecord>;
      return findPage<DocumentRecord, DocumentRecord>(documents, { tenantId, page, filter });
    },
    /** Hides some documents of a collection for good; the sweep removes them. Returns false if none was left. */
    async beginDeleteSome(tenantId: string, name: string, limit: number): Promise<boolean> {
      const there = {
        ...ofTenant(tenantId, { status: { $in: documentStatesBefore("deleting") } }),
        ...inCollections([name]),
      };
      const ids = await documents.find(there).project<{ _id: string }>({ _id: 1 }).limit(limit).toArray();
      if (ids.length === 0) return false;
      const these = ofTenant(tenantId, { _id: { $in: ids.map(({ _id }) => _id) } });
      const set = { status: "deleting" as const, updatedAt: new Date(0) }; // the next sweep removes them
      await documents.updateMany(these, { $set: set, $unset: { urlHash: "", externalHash: "" } });
      return true;
    },
    /** What searches show of documents, by their ids. */
    async describe(tenantId: string, documentIds: readonly string[]): Promise<Map<string, DescribedDocument>> {
      const these = documents.find(ofTenant(tenantId, { _id: { $in: [...documentIds] }, status: alive }));
      const fields = { title: 1, fileId: 1, "source.name": 1, "source.url": 1, metadata: 1 } as const;
      const found = await these.project<DescribedDocument>(fields).toArray();
      return new Map(found.map((document) => [document._id, document]));
    },
    /** Some documents of a collection. */
    someOf: (tenantId: string, name: string, limit: number) =>
      documents
        .find({ ...ofTenant(tenantId, { status: alive }), ...inCollections([name]) })
        .project<{ _id: string }>({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Whether a collection has documents, including those that are being deleted. */
    hasAny: async (tenantId: string, name: string) =>
      (await documents.findOne({ ...ofTenant(tenantId), ...inCollections([name]) }, { projection: { _id: 1 } })) !==
      null,
    ...makeDueDocuments(documents),
  };
}

/** Documents whose time has come: to be read again, or to go. */
function makeDueDocuments(documents: Collection<DocumentRecord>) {
  return {
    /** Documents of all tenants whose URL is to be read again, the longest due first. */
    dueForRefresh: ({ before, limit }: { before: Date; limit: number }): Promise<DocumentRecord[]> =>
      findFirst(documents, { refreshAt: { $lte: before }, status: alive }, { by: "refreshAt", limit }),
    /** Marks documents of a collection that have a URL, to be refreshed now. Returns how many, and where to go on, if there may be more. */
    async markForRefresh(tenantId: string, { name, after, limit }: { name: string; after: string; limit: number }) {
      const ofUrl = { ...inCollections([name]), status: alive, "source.kind": "url" as const, _id: { $gt: after } };
      const found = await documents
        .find(ofTenant(tenantId, ofUrl))
        .project<{ _id: string }>({ _id: 1 })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray();
      const ids = found.map(({ _id }) => _id);
      const { modifiedCount } = await documents.updateMany(ofTenant(tenantId, { _id: { $in: ids } }), {
        $set: { refreshAt: new Date() },
        $unset: { refreshFailures: "" },
      });
      return { marked: modifiedCount, next: found.length < limit ? undefined : ids.at(-1) };
    },
    /**
     * Sets when a document is refreshed next, or that it is not. Returns false if another process did so, or if the document
     * has another job.
     */
    setRefresh(
      { _id, tenantId, refreshAt, jobId }: DocumentRecord,
      { at, failures }: { at: Date | undefined; failures?: number },
    ): Promise<boolean> {
      const set = {
        ...(at ? { refreshAt: at } : {}),
        ...(failures === undefined ? {} : { refreshFailures: failures }),
      };
      const update = { $set: set, ...(at ? {} : { $unset: { refreshAt: "" as const } }) };
      return updateIf(
        documents,
        { ...ofTenant(tenantId, { _id, jobId }), ...(refreshAt ? { refreshAt } : {}) },
        update,
      );
    },
    /** Documents of all tenants that have expired. */
    expired: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(documents, { expiresAt: { $lte: before }, status: alive }, { by: "expiresAt", limit }),
  };
}
