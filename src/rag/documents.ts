import { defined, toView } from "../lib/defined.ts";
import { invalidRequest, notFound } from "../lib/errors.ts";
import { placeOf } from "../store/chunk.ts";
import { numberOfChunk } from "../store/chunk-store.ts";
import { collectionOf } from "../store/collection-filter.ts";
import { refreshFields } from "../store/document-changes.ts";
import { type DocumentRecord, isGone } from "../store/document-record.ts";
import type { ShownDocument } from "../store/document-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import { readSpaceKey } from "../store/vector-space.ts";
import type { Caller } from "../tenancy/roles.ts";
import { chooseCollections, mayUse } from "./collections.ts";
import type { RagDeps } from "./deps.ts";
import { removeDocument, removeOfFile } from "./document-work.ts";
import { guardRead } from "./guard-document.ts";
import { toRefresh } from "./refresh-times.ts";
import { type DocumentChange, type DocumentView, tagsOf } from "./schemas.ts";

type DocumentQuery = PageQuery & {
  status?: DocumentView["status"] | undefined;
  title?: string | undefined;
  collection?: string | undefined;
};

type ChunksQuery = { cursor?: number | undefined; chunkId?: string | undefined; limit: number };

/** Documents as callers read, change and remove them. For a limited key, documents of other collections do not exist. */
export function makeDocuments(deps: Pick<RagDeps, "store" | "jobs" | "pace" | "guards">) {
  const { store } = deps;
  const find = async (caller: Caller, documentId: string) => {
    const document = await store.documents.get(caller.tenantId, documentId);
    if (!document || isGone(document) || !mayUse(caller, document)) throw notFound("document");
    return document;
  };
  return {
    /** A document that the caller may use. @throws AppError `not_found`. */
    find,
    /** A page of the documents in a state, and how many there are; `title`: of those whose title holds this text. */
    async list(
      caller: Caller,
      { status = "indexed", collection, ...page }: DocumentQuery,
    ): Promise<Page<DocumentView> & { total: number }> {
      const { tenantId } = caller;
      const collections = chooseCollections(caller, collection);
      const found = store.documents.list(tenantId, { status, collections, ...page });
      const [documents, total] = await Promise.all([found, store.documents.count(tenantId, status, collections)]);
      const kept = documents.data.filter((document) => !isGone(document));
      return { ...mapPage({ ...documents, data: kept }, toDocumentView), total };
    },
    /** @throws AppError `not_found` */
    get: async (caller: Caller, documentId: string): Promise<DocumentView> =>
      toDocumentView(await find(caller, documentId)),
    /** See `listChunks`. @throws AppError `not_found` */
    chunks: async (caller: Caller, documentId: string, query: ChunksQuery) =>
      listChunks(store, await find(caller, documentId), query),
    /** Changes a document's title, metadata or expiry; null removes that. @throws AppError `not_found`, `compliance_blocked`. */
    async describe(caller: Caller, documentId: string, change: DocumentChange): Promise<DocumentView> {
      const known = await find(caller, documentId);
      const { source } = known;
      const { expiresAt, refreshEveryHours, ...said } = change;
      const { title, name, metadata } = await guardRead(deps, caller, said);
      if (name !== undefined && source.kind !== "file")
        throw invalidRequest("name", "name: only a document of a file has one.");
      if (refreshEveryHours && source.kind !== "url")
        throw invalidRequest("refreshEveryHours", "refreshEveryHours: only a document of a URL is read again.");
      const set = {
        ...(name === undefined ? {} : renamed(known, name)),
        ...(title === undefined ? {} : { title, isTitleGiven: true }),
        ...(metadata === undefined ? {} : { metadata, tags: tagsOf(metadata) }),
        ...(expiresAt ? { expiresAt: new Date(expiresAt) } : {}),
        ...toRefresh(refreshEveryHours),
      };
      const unset = [
        ...(expiresAt === null ? (["expiresAt"] as const) : []),
        ...(refreshEveryHours === null ? refreshFields : []),
        ...(refreshEveryHours ? (["refreshFailures"] as const) : []),
      ];
      const changed = await store.documents.describeOne(caller.tenantId, documentId, { set, unset });
      if (!changed) throw notFound("document");
      return toDocumentView(changed);
    },
    /** Removes a document with all its chunks and its source, also while its job runs. @throws AppError `not_found` */
    async remove(caller: Caller, documentId: string): Promise<void> {
      await find(caller, documentId);
      await removeDocument(deps, caller.tenantId, documentId);
    },
    /** Removes all documents of a file. */
    removeOfFile: (tenantId: string, fileId: string) => removeOfFile(deps, tenantId, fileId),
  };
}

/** The chunks that queries see of a document, from number `cursor` on, or from a chunk on. @throws AppError `not_found` for that one */
async function listChunks(
  store: Pick<RagDeps["store"], "chunks">,
  { tenantId, _id: documentId, version, chunks }: DocumentRecord,
  { cursor, chunkId, limit }: ChunksQuery,
) {
  const from = cursor ?? (chunkId === undefined ? 0 : numberOfChunk(chunkId));
  const found = await store.chunks.list(tenantId, { documentId, version }, { from, limit });
  if (cursor === undefined && chunkId !== undefined && found[0]?._id !== chunkId)
    throw notFound("chunk in the document as it is now");
  const data = found.map(({ _id, n, content, tokens, ...place }) => ({
    chunkId: _id,
    n,
    content,
    tokens,
    ...placeOf(place),
  }));
  const last = data.at(-1)?.n ?? 0;
  return { data, nextCursor: data.length < limit || last + 1 >= chunks ? null : String(last + 1) };
}

/** Changes that follow from a new file name. The title changes too if it was the file name, with or without its ending. */
function renamed({ source, title, isTitleGiven }: DocumentRecord, name: string) {
  const stem = (file = "") => file.replace(/\.[^.]+$/, "");
  const isName = !isTitleGiven && title === source.name;
  const isStem = !isTitleGiven && title === stem(source.name);
  return { "source.name": name, ...(isName ? { title: name } : isStem ? { title: stem(name) } : {}) };
}

function toDocumentView(record: ShownDocument): DocumentView {
  const { _id: documentId, title, chunks, createdAt, updatedAt, metadata, jobId, duplicateOf, error } = record;
  const { externalId, expiresAt, refreshEveryHours, refreshAt, warnings, requireComplete } = record;
  const { kind, url, name, type } = record.source;
  const source = defined({ kind, url, name, type });
  const space = record.vectorSpace === undefined ? undefined : readSpaceKey(record.vectorSpace);
  const status = record.status === "deleting" ? "failed" : record.status; // it is never shown in that state; only the type needs this
  return toView({
    documentId,
    title,
    collection: collectionOf(record),
    externalId,
    expiresAt,
    refreshEveryHours,
    refreshAt,
    chunks,
    createdAt,
    updatedAt,
    status,
    source,
    metadata,
    jobId,
    duplicateOf,
    warnings,
    requireComplete,
    embeddingModel: space?.model,
    dimensions: space?.dimensions,
    error,
  });
}
