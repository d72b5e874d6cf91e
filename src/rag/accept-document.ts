import { createHash } from "node:crypto";
import type { z } from "zod";
import { defined } from "../defined.ts";
import { AppError, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import { submitWork, type Work } from "../jobs/work.ts";
import { assertFetchable } from "../net/egress.ts";
import { collectionField, DEFAULT_COLLECTION } from "../store/collection-filter.ts";
import type { DocumentRecord, DocumentSource } from "../store/document-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Caller } from "../tenancy/roles.ts";
import { collectionForIngest } from "./collections.ts";
import type { RagDeps } from "./deps.ts";
import { rejectUnreadable } from "./parse/parse-source.ts";
import { firstLineOf } from "./parse/section.ts";
import { type fileFieldsSchema, type ingestBodySchema, tagsOf } from "./schemas.ts";

/** What to ingest: a URL, a text, or a file's bytes with the name and type that its sender declared. */
export type IngestInput =
  | z.output<typeof ingestBodySchema>
  | (z.output<typeof fileFieldsSchema> & { file: { bytes: Buffer; name?: string; type?: string } });

/** A document to accept. `isInteractive`: the caller waits for it. */
export type Acceptance = NewDocument<IngestInput> & { isInteractive: boolean };

/**
 * Keeps the source, records the document and submits its job, in this order: a job always finds its document.
 * @throws AppError `source_refused`; `source_unreadable` for a picture, a program and the like; `quota_exceeded`; `unavailable` (then nothing is left behind, or the sweep removes it).
 */
export async function acceptDocument(
  deps: RagDeps & { work: Work; allowOrigins: readonly string[] },
  { caller, document, isInteractive, jobId }: Acceptance,
): Promise<{ job: JobRecord; documentId: string }> {
  const { record, isNew } =
    "url" in document
      ? await recordUrl(deps, { caller, document, jobId, url: assertFetchable(document.url, deps.allowOrigins).url })
      : await recordBytes(deps, { caller, document, jobId });
  const { tenantId, _id: documentId } = record;
  const fail = (_: DocumentRecord, error: unknown) =>
    deps.store.documents.fail(tenantId, documentId, { jobId, error: toErrorView(error) });
  const work = isNew ? deps.work : { ...deps.work, reject: fail }; // queries still see a known document
  return {
    job: await submitWork(deps.jobs, work, { record, isInteractive, title: record.title, startedBy: caller.subject }),
    documentId,
  };
}

type Recorded = { record: DocumentRecord; isNew: boolean };
type NewDocument<D> = { caller: Caller; document: D; jobId: string };

/** The same URL of a tenant is the same document: queries see the earlier version until the new one is complete. */
async function recordUrl(
  deps: RagDeps,
  { caller, document, jobId, url }: NewDocument<IngestInput> & { url: URL },
): Promise<Recorded> {
  url.hash = "";
  const collection = collectionForIngest(caller, document.collection);
  const place = collection === DEFAULT_COLLECTION ? "" : `${collection}\n`;
  const urlHash = createHash("sha256").update(`${place}${url.href}`).digest("base64url");
  const fresh = {
    ...toRecord({ caller, document, jobId, source: { kind: "url", url: url.href }, fallback: nameOf(url) }),
    urlHash,
  };
  const { title, metadata } = document;
  const change = {
    jobId,
    keyId: caller.keyId,
    ...(title === undefined ? {} : { title, isTitleGiven: true }),
    ...(metadata === undefined ? {} : { metadata, tags: tagsOf(metadata) }),
  };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const known = await deps.store.documents.findByUrl(caller.tenantId, urlHash);
    if (known) {
      const reassigned = await deps.store.documents.reassign(caller.tenantId, known._id, change);
      if (reassigned) return { record: reassigned, isNew: false };
    } else {
      await deps.quotas.check(caller.tenantId, "documents");
      if (await deps.store.documents.insert(fresh)) return { record: fresh, isNew: true };
    }
  }
  const text = "Another request is changing the document of this URL; try again.";
  throw new AppError("wrong_state", text, { retryable: true });
}

async function recordBytes(
  deps: RagDeps,
  { caller, document, jobId }: NewDocument<Exclude<IngestInput, { url: string }>>,
): Promise<Recorded> {
  const isFile = "file" in document;
  const bytes = isFile ? document.file.bytes : Buffer.from(document.content);
  const { name, type } = isFile ? document.file : {};
  await rejectUnreadable({ bytes, ...defined({ name, type }) });
  const kind = isFile ? "file" : "content";
  const source: DocumentSource = { kind, bytes: bytes.length, ...(name ? { name } : {}), ...(type ? { type } : {}) };
  const fallback = isFile ? (name ?? "Untitled") : (firstLineOf(document.content) ?? "Untitled");
  const record = toRecord({ caller, document, jobId, source, fallback });
  await deps.quotas.check(caller.tenantId, "documents");
  await deps.quotas.check(caller.tenantId, "storedBytes", bytes.length);
  await deps.store.sources.write(caller.tenantId, record._id, bytes);
  await deps.store.documents.insert(record);
  return { record, isNew: true };
}

function toRecord(input: NewDocument<IngestInput> & { source: DocumentSource; fallback: string }): DocumentRecord {
  const { caller, document, jobId, source, fallback } = input;
  const { title, metadata = {} } = document;
  const now = new Date();
  return {
    _id: newId("document"),
    tenantId: caller.tenantId,
    ...collectionField(collectionForIngest(caller, document.collection)),
    title: title ?? fallback,
    isTitleGiven: title !== undefined,
    source,
    status: "queued",
    version: 0,
    lastVersion: 0,
    chunks: 0,
    metadata,
    tags: tagsOf(metadata),
    createdAt: now,
    updatedAt: now,
    jobId,
    keyId: caller.keyId,
  };
}

function nameOf(url: URL): string {
  return `${url.host}${url.pathname === "/" ? "" : url.pathname}`.slice(0, 300);
}
