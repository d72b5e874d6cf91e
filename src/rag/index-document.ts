import { createHash } from "node:crypto";
import { basename } from "node:path/posix";
import type { WorkContext } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError, isCancel, toErrorView } from "../lib/errors.ts";
import { forEachConcurrent } from "../lib/for-each-concurrent.ts";
import { inSpan, type SpanStart } from "../observe/tracing.ts";
import type { DocumentRecord, SourceValidators } from "../store/document-record.ts";
import { isStoreFailure } from "../store/store-errors.ts";
import { toSpaceKey } from "../store/vector-space.ts";
import type { RagDeps } from "./deps.ts";
import { EMBED_BATCH, embedChunks, type VersionContext } from "./embed-chunks.ts";
import { dropGuardedSource, guardRead } from "./guard-document.ts";
import type { RawSource } from "./parse/parse-source.ts";
import type { ParsedSource } from "./parse-in-child.ts";
import type { IngestResult } from "./schemas.ts";
import type { ChunkText } from "./split.ts";
import { removeUnlessPublished } from "./stray-chunks.ts";
import { assertComplete } from "./warnings.ts";

const EMBEDS_IN_FLIGHT = 4;
const REPORT_EVERY_MS = 250; // each progress report is a write to the store
const REPORT_BYTES = 65_536; // parsing a smaller source is too fast to be reported
/** Chunks of a document that is written in one command and live at once. A larger one is shown just before it is published. */
const SINGLE_WRITE = EMBED_BATCH;

/**
 * Makes a document searchable: fetch, parse and split in a child process, embed, write, publish. Each attempt writes a
 * version of its own, which no query sees until it is complete. A compare-and-set on the document then switches queries to
 * it, and the earlier version is removed. So an attempt may be cut at any point and repeated, and two may run at once.
 * @throws AppError the reason of the failure; it is stored on the document too, unless the job will be retried.
 */
export async function indexDocument(deps: RagDeps, context: WorkContext): Promise<IngestResult> {
  const { tenantId, recordId: documentId, jobId } = context;
  const document = await deps.store.documents.beginVersion(tenantId, documentId);
  if (!document) throw deleted();
  try {
    return await buildVersion(deps, context, document);
  } catch (error) {
    const { lastVersion: attempted } = document;
    await removeUnlessPublished(deps, document).catch((cause: unknown) => {
      deps.logger.warn({ err: cause, documentId }, "chunks of a failed attempt stay hidden until the next attempt");
    });
    if (!endsJob(error, context)) throw error;
    if (!context.signal.aborted) await context.confirm();
    await dropGuardedSource(deps, document);
    await deps.store.documents.fail(tenantId, documentId, { jobId, error: toErrorView(error), attempted });
    throw error;
  }
}

/**
 * Whether the job ends with this error. After a lost lease or a shutdown, the sweep records the end. While the store is
 * unavailable, the job does not end.
 */
export function endsJob(error: unknown, { signal, isLastAttempt }: WorkContext): boolean {
  if (signal.aborted) return isCancel(signal.reason);
  if (isStoreFailure(error)) return false;
  return isLastAttempt || !(error instanceof AppError && error.retryable);
}

async function buildVersion(deps: RagDeps, context: WorkContext, document: DocumentRecord): Promise<IngestResult> {
  const { tenantId, signal } = context;
  if (document.source.url !== undefined) await context.progress({ stage: "fetching", done: 0, total: 1 });
  const source = await inSpan(stage("fetch source"), () => fetchSource(deps, document, signal));
  if (source.isUnchanged) return { ...resultOf(document), unchanged: true };
  const contentHash = createHash("sha256").update(source.bytes).digest("base64url");
  if (source.bytes.length > REPORT_BYTES) await context.progress({ stage: "parsing", done: 0, total: 1 });
  const model = await deps.embeddingModels.find(tenantId);
  const duplicateOf = await deps.store.documents.findByContent(document, contentHash);
  const read = await inSpan(stage("parse source"), () => deps.parser.read(source, { tenantId, signal }));
  try {
    return await writeVersion(deps, context, { document, source, contentHash, model, duplicateOf, read });
  } finally {
    await read[Symbol.asyncDispose]();
  }
}

type ReadVersion = {
  document: DocumentRecord;
  source: ReadSource;
  contentHash: string;
  model: string;
  duplicateOf: string | null;
  read: ParsedSource;
};

/** Writes the chunks of what was read, and publishes the version. */
async function writeVersion(
  deps: RagDeps,
  context: WorkContext,
  { document, source, contentHash, model, duplicateOf, read }: ReadVersion,
): Promise<IngestResult> {
  const { tenantId, recordId: documentId, signal } = context;
  if (document.requireComplete) assertComplete(read.warnings);
  const version = document.lastVersion;
  const own = document.isTitleGiven ? undefined : (read.title ?? document.source.name);
  const title = own === undefined ? document.title : await guardRead(deps, document, own);
  const isSmall = read.expected <= SINGLE_WRITE;
  const { count, dimensions } = await writeChunks(deps, context, read, {
    caller: { tenantId, keyId: document.keyId, surface: "ingest", signal, origin: { jobId: context.jobId } },
    model,
    documentId,
    ...(document.collection === undefined ? {} : { collection: document.collection }),
    version,
    title,
    isLive: isSmall,
    hasEarlier: version > 1,
  });
  if (count === 0) throw new AppError("source_unreadable", "The source cannot be read. There is no text in it.");
  // Either all chunks are made visible or the version is not published, since a sweep may have removed some meanwhile.
  const place = { documentId, version };
  const shown = isSmall ? count : await deps.store.chunks.makeLive(tenantId, place, count, context.share);
  if (shown !== count)
    throw new AppError("unavailable", "Chunks of the document were removed meanwhile.", { retryable: true });
  signal.throwIfAborted();
  const vectorSpace = toSpaceKey({ model, dimensions });
  const { validators } = source;
  const { warnings } = read;
  const about = { vectorSpace, duplicateOf, warnings, ...(validators ? { validators } : {}) };
  const named = document.isTitleGiven ? {} : { title };
  const made = { version, chunks: count, publishedBy: context.jobId, type: read.type, contentHash };
  const change = { ...made, ...named, ...about };
  const published = await deps.store.documents.publish(tenantId, documentId, change);
  if (!published) return superseded(deps, document);
  if (version > 1) {
    await deps.store.chunks.remove(tenantId, { documentId, before: version });
    await deps.store.documents.haveNoStrays(document);
  }
  await dropFormerSources(deps, document);
  await dropGuardedSource(deps, document);
  return { documentId, chunks: count, status: "indexed", warnings, ...(duplicateOf === null ? {} : { duplicateOf }) };
}

/** `isUnchanged`: the server says that its URL has not changed; then there are no bytes. */
type ReadSource = RawSource & { validators?: SourceValidators; isUnchanged?: true };

/** Returns the bytes of a document, fetched if it is a URL. @throws AppError as `GuardedFetch.get` does */
async function fetchSource(deps: RagDeps, document: DocumentRecord, signal: AbortSignal): Promise<ReadSource> {
  const { source, tenantId } = document;
  // A version that queries see need not be made again, unless an earlier attempt of this job has made it, and was cut.
  const isRefresh =
    document.refreshJobId === document.jobId &&
    document.status === "indexed" &&
    document.publishedBy !== document.jobId;
  if (source.url !== undefined) {
    const known = isRefresh ? document.validators : undefined;
    const { url, bytes, type, ...fetched } = await deps.fetcher.get(source.url, signal, known);
    const name = basename(new URL(url).pathname);
    return { bytes, ...fetched, ...(type ? { type } : {}), ...(name ? { name } : {}) };
  }
  const bytes = await deps.store.sources.read(tenantId, document.sourceId ?? document._id);
  const isPublished = document.publishedBy === document.jobId && document.status === "indexed";
  if (!bytes && isPublished) return { bytes: Buffer.alloc(0), isUnchanged: true }; // an earlier attempt had only its end left to note
  if (!bytes) throw new AppError("source_unreadable", "The document's source is gone.");
  const type = source.kind === "content" ? "text/plain; charset=utf-8" : source.type; // regardless of what a page declares
  return { bytes, ...(type ? { type } : {}), ...(source.name ? { name: source.name } : {}) };
}

/** The span of a part of the work; embedding calls have spans of their own. */
function stage(name: string): SpanStart {
  return { name, kind: "INTERNAL", attributes: {} };
}

/**
 * Embeds and writes the chunks of the child process, a few batches at a time. Returns their number, and the length of their
 * vectors. @throws AppError `provider_failed` when these differ in length: no search would find all of them.
 */
async function writeChunks(
  deps: RagDeps,
  context: WorkContext,
  read: { chunks: AsyncIterable<ChunkText[]>; expected: number },
  version: VersionContext,
): Promise<{ count: number; dimensions: number }> {
  let count = 0;
  const lengths = new Set<number>();
  const numbered = async function* () {
    for await (const texts of inBatches(read.chunks, EMBED_BATCH)) {
      yield { from: count, texts };
      count += texts.length;
    }
  };
  let done = 0;
  let reportedAt = performance.now();
  await forEachConcurrent(numbered(), EMBEDS_IN_FLIGHT, async (batch) => {
    version.caller.signal.throwIfAborted();
    const texts = await guardRead(deps, version.caller, batch.texts);
    const chunks = await embedChunks(deps, version, { ...batch, texts });
    for (const { embedding } of chunks) lengths.add(embedding.length);
    if (lengths.size > 1)
      throw new AppError("provider_failed", `${version.model} made vectors of different lengths for one document.`);
    await deps.store.chunks.insert(context.tenantId, chunks, context.share);
    done += chunks.length;
    if (performance.now() - reportedAt < REPORT_EVERY_MS) return;
    reportedAt = performance.now();
    await context.progress({ stage: "embedding", done, total: Math.max(done, read.expected) });
  });
  const [dimensions = 0] = lengths;
  return { count, dimensions };
}

/** Regroups arrays of any length into arrays of `size`; the last may be shorter. */
export async function* inBatches<T>(source: AsyncIterable<readonly T[]>, size: number): AsyncGenerator<T[]> {
  let held: T[] = [];
  for await (const items of source) {
    held.push(...items);
    while (held.length >= size) {
      yield held.slice(0, size);
      held = held.slice(size);
    }
  }
  if (held.length > 0) yield held;
}

/** Removes the sources of earlier versions, which no attempt reads any more. */
async function dropFormerSources(deps: RagDeps, document: DocumentRecord): Promise<void> {
  const { tenantId, formerSources = [] } = document;
  for (const sourceId of formerSources) await deps.store.sources.remove(tenantId, sourceId);
  if (formerSources.length > 0) await deps.store.documents.forgetSources(document);
}

/** Drops this version, because the document was deleted or has a later version by now. */
async function superseded(
  deps: RagDeps,
  { tenantId, _id: documentId, lastVersion }: DocumentRecord,
): Promise<IngestResult> {
  await deps.store.chunks.remove(tenantId, { documentId, version: lastVersion });
  const current = await deps.store.documents.get(tenantId, documentId);
  if (!current) throw deleted();
  // Nothing came in its place: the document must not count as indexed by it.
  if (current.version < lastVersion)
    throw new AppError("unavailable", "The attempt was given up meanwhile.", { retryable: true });
  return resultOf(current);
}

/** The result of a job that leaves the document as it is. */
function resultOf({ _id: documentId, chunks, warnings }: DocumentRecord): IngestResult {
  return { documentId, chunks, status: "indexed", ...defined({ warnings }) };
}

function deleted(): AppError {
  return new AppError("cancelled", "The document was deleted.");
}
