import { createHash } from "node:crypto";
import type { z } from "zod";
import { defined } from "../lib/defined.ts";
import { AppError, invalidRequest, notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { assertFetchable } from "../net/egress.ts";
import { collectionField, collectionOf, DEFAULT_COLLECTION } from "../store/collection-filter.ts";
import type { Reassignment } from "../store/document-changes.ts";
import type { DocumentRecord, DocumentSource } from "../store/document-record.ts";
import type { Caller } from "../tenancy/roles.ts";
import { collectionForIngest, mayUse } from "./collections.ts";
import type { RagDeps } from "./deps.ts";
import { ensureCollection } from "./known-collections.ts";
import { rejectUnreadable } from "./parse/parse-source.ts";
import { firstLineOf } from "./parse/section.ts";
import { toRefresh } from "./refresh-times.ts";
import { type fileFieldsSchema, type ingestBodySchema, tagsOf } from "./schemas.ts";

/** A file of `/v1/files`, whose bytes are kept there. */
export type StoredFile = { id: string; name: string; bytes: number; batchId?: string };

/** What to ingest: a URL, a text, a file's bytes with the name and type that its sender declared, or a stored file. */
export type IngestInput =
  | z.output<typeof ingestBodySchema>
  | (z.output<typeof fileFieldsSchema> & { file: { bytes: Buffer; name?: string; type?: string } })
  | (z.output<typeof fileFieldsSchema> & { storedFile: StoredFile });

export type NewDocument = { caller: Caller; document: IngestInput; jobId: string };
type Recorded = { record: DocumentRecord; isNew: boolean };
type RecordDeps = RagDeps & { allowOrigins: readonly string[] };
/** A source that is ready to be stored. `write` stores its bytes under an id, unless they are stored elsewhere. */
type Prepared = { source: DocumentSource; fallback: string; bytes?: Buffer };
type Known = { find(): Promise<DocumentRecord | null>; identity: Partial<DocumentRecord> };

const MAX_ATTEMPTS = 3;

/**
 * Records a document of a source, or gives one that is known a new source: by its id, by the caller's own id of it, or by its
 * URL. What queries see of a known one stays until the new version is complete. @throws AppError as `acceptDocument`.
 */
export async function recordSource(deps: RecordDeps, given: NewDocument): Promise<Recorded> {
  const { caller, document, jobId } = given;
  const prepared = await prepare(deps, document);
  const replaced = await findReplaced(deps, given);
  const collection = replaced ? collectionOf(replaced) : collectionForIngest(caller, document.collection);
  const mustExist = "storedFile" in document;
  const ensure = () => ensureCollection(deps, { tenantId: caller.tenantId, name: collection, mustExist });
  await ensure();
  const { find, identity } = replaced
    ? { find: () => deps.store.documents.get(caller.tenantId, replaced._id), identity: {} }
    : identify(deps, { tenantId: caller.tenantId, collection, document, source: prepared.source });
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const known = await find();
    if (replaced && !known) throw notFound("document");
    const recorded = known
      ? await reassign(deps, known, { given, prepared })
      : await insert(
          deps,
          { ...toRecord({ caller, document, jobId, ...prepared }), ...collectionField(collection), ...identity },
          prepared,
        );
    if (recorded?.isNew) await confirm(deps, recorded.record, ensure);
    if (recorded) return recorded;
  }
  const text = "Another request is changing the same document; try again.";
  throw new AppError("wrong_state", text, { retryable: true });
}

async function prepare(deps: RecordDeps, document: IngestInput): Promise<Prepared> {
  if ("url" in document) {
    const { url } = assertFetchable(document.url, deps.allowOrigins);
    url.hash = "";
    return { source: { kind: "url", url: url.href }, fallback: nameOf(url) };
  }
  if ("refreshEveryHours" in document && document.refreshEveryHours !== undefined)
    throw invalidRequest("refreshEveryHours", "refreshEveryHours: only a URL is read again.");
  if ("storedFile" in document) {
    const { id: fileId, name, bytes } = document.storedFile;
    return { source: { kind: "file", name, bytes, fileId }, fallback: name };
  }
  const isFile = "file" in document;
  const bytes = isFile ? document.file.bytes : Buffer.from(document.content);
  const { name, type } = isFile ? document.file : {};
  await rejectUnreadable({ bytes, ...defined({ name, type }) });
  const source = { kind: isFile ? "file" : "content", bytes: bytes.length, ...defined({ name, type }) } as const;
  const fallback = isFile ? (name ?? "Untitled") : (firstLineOf(document.content) ?? "Untitled");
  return { source, fallback, bytes };
}

/** The document that the caller names to be replaced. @throws AppError `not_found`, `invalid_request`. */
async function findReplaced({ store }: RecordDeps, { caller, document }: NewDocument): Promise<DocumentRecord | null> {
  const { documentId, externalId, collection } = document;
  if (documentId === undefined) return null;
  if (externalId !== undefined) throw invalidRequest("externalId", "externalId: name the document by one id only.");
  const known = await store.documents.get(caller.tenantId, documentId);
  if (!known || !mayUse(caller, known)) throw notFound("document");
  if (collection === undefined || collection === collectionOf(known)) return known;
  throw invalidRequest("collection", "collection: a document stays in its collection.");
}

/**
 * The identity of a document within its collection: the caller's own id, its file or its URL. Without one it is always a new
 * document.
 */
function identify(
  { store: { documents } }: RecordDeps,
  {
    tenantId,
    collection,
    document,
    source,
  }: { tenantId: string; collection: string; document: IngestInput; source: DocumentSource },
): Known {
  const { externalId } = document;
  const { fileId, url } = source;
  if (externalId !== undefined || fileId !== undefined) {
    const externalHash = hashOf(externalId === undefined ? "file" : "id", collection, externalId ?? fileId ?? "");
    const identity = { externalHash, ...defined({ externalId }) };
    return { find: () => documents.findByExternal(tenantId, externalHash), identity };
  }
  if (url === undefined) return { find: async () => null, identity: {} };
  const urlHash = collection === DEFAULT_COLLECTION ? hashOf(url) : hashOf(collection, url);
  return { find: () => documents.findByUrl(tenantId, urlHash), identity: { urlHash } };
}

const hashOf = (...parts: string[]) => createHash("sha256").update(parts.join("\n")).digest("base64url");

/** Inserts a document. Returns null if another document has the same identity by now. */
async function insert(deps: RecordDeps, record: DocumentRecord, { bytes }: Prepared): Promise<Recorded | null> {
  const { tenantId, _id } = record;
  await deps.quotas.check(tenantId, "documents");
  if (bytes) {
    await deps.quotas.check(tenantId, "storedBytes", bytes.length);
    await deps.store.sources.write(tenantId, _id, { bytes });
  }
  if (await deps.store.documents.insert(record)) return { record, isNew: true };
  if (bytes) await deps.store.sources.remove(tenantId, _id);
  return null;
}

/**
 * Looks again for the collection of a new document, which may have been deleted while it was recorded: that deletion did not
 * see it. Without a collection the document is removed by the sweep. @throws AppError as `ensureCollection`.
 */
async function confirm(deps: RecordDeps, { tenantId, _id }: DocumentRecord, ensure: () => Promise<void>) {
  try {
    await ensure();
  } catch (error) {
    await deps.store.documents.beginDelete(tenantId, _id);
    throw error;
  }
}

/** Gives a known document a new source and job. Returns null if it changed meanwhile. */
async function reassign(
  deps: RecordDeps,
  known: DocumentRecord,
  { given: { caller, document, jobId }, prepared: { source, bytes } }: { given: NewDocument; prepared: Prepared },
): Promise<Recorded | null> {
  const { tenantId } = known;
  const sourceId = bytes ? newId("source") : source.fileId;
  if (bytes && sourceId) {
    await deps.quotas.check(tenantId, "storedBytes", bytes.length);
    await deps.store.sources.write(tenantId, sourceId, { bytes, ownerId: known._id });
  }
  const isSame = source.url !== undefined && source.url === known.source.url;
  const change: Reassignment = {
    jobId,
    keyId: caller.keyId,
    ...describe(document),
    ...(isSame ? {} : { source, ...defined({ sourceId }) }),
  };
  const record = await deps.store.documents.reassign(known, change);
  if (record) return { record, isNew: false };
  if (bytes && sourceId) await deps.store.sources.remove(tenantId, sourceId);
  return null;
}

/** The fields of a body that describe a document, besides its source. */
function describe(document: IngestInput) {
  const { title, metadata, expiresAt, requireComplete } = document;
  const fileBatchId = "storedFile" in document ? document.storedFile.batchId : undefined;
  return {
    ...(title === undefined ? {} : { title, isTitleGiven: true }),
    ...(metadata === undefined ? {} : { metadata, tags: tagsOf(metadata) }),
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt) }),
    ...("refreshEveryHours" in document ? toRefresh(document.refreshEveryHours) : {}),
    ...defined({ fileBatchId, requireComplete }),
  };
}

function toRecord({ caller, document, jobId, source, fallback }: NewDocument & Prepared): DocumentRecord {
  const now = new Date();
  return {
    _id: newId("document"),
    tenantId: caller.tenantId,
    title: fallback,
    isTitleGiven: false,
    source,
    ...defined({ sourceId: source.fileId, fileId: source.fileId }),
    status: "queued",
    version: 0,
    lastVersion: 0,
    chunks: 0,
    metadata: {},
    tags: [],
    ...describe(document),
    createdAt: now,
    updatedAt: now,
    jobId,
    keyId: caller.keyId,
  };
}

function nameOf(url: URL): string {
  return `${url.host}${url.pathname === "/" ? "" : url.pathname}`.slice(0, 300);
}
