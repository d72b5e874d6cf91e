import { AppError, toErrorView } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import { isStoreUnavailable } from "../store/connect.ts";
import type { DocumentRecord } from "../store/document-store.ts";
import { inSpan, type SpanStart } from "../tracing.ts";
import type { RagDeps } from "./deps.ts";
import { EMBED_BATCH, embedChunks, type VersionContext } from "./embed-chunks.ts";
import { fetchSource } from "./fetch-source.ts";
import { inBatches, mapOrdered } from "./pipeline.ts";
import type { IngestResult } from "./schemas.ts";
import type { ChunkText } from "./split.ts";

const EMBEDS_IN_FLIGHT = 4;
const TELL_EVERY_MS = 250; // progress is a write of its own
const TELL_BYTES = 65_536; // a smaller source is parsed before anybody could look
/** A document of no more chunks is written in one command, live at once: between that and its publication lies no more time
 * than between showing and publishing a larger one. */
const SINGLE_WRITE = EMBED_BATCH;

/**
 * Makes a document searchable: fetch, parse and split in a child process, embed, write, publish. Each try writes a version of its
 * own, unseen until it is complete; one compare-and-set on the document then moves queries over, and what was before is
 * dropped. So it can be cut at any point and run again, and two runs at once do no harm.
 * @throws AppError the reason why it failed; the document then has it too, unless the job will be tried again.
 */
export async function indexDocument(deps: RagDeps, context: WorkContext): Promise<IngestResult> {
  const { tenantId, recordId: documentId, jobId } = context;
  const document = await deps.store.documents.beginVersion(tenantId, documentId);
  if (!document) throw deleted();
  try {
    return await buildVersion(deps, context, document);
  } catch (error) {
    await deps.store.chunks.remove(tenantId, { documentId, version: document.lastVersion }).catch((cause: unknown) => {
      deps.logger.warn({ err: cause, documentId }, "chunks of a failed try stay, unseen, until the next one");
    });
    if (isFinal(error, context))
      await deps.store.documents.fail(tenantId, documentId, { jobId, error: toErrorView(error) });
    throw error;
  }
}

/**
 * Whether the job ends with this error. Where its end is decided elsewhere (a lost lease, a shutdown), the sweep tells it; with
 * a store that is away it does not end.
 */
function isFinal(error: unknown, { signal, isLastAttempt }: WorkContext): boolean {
  const reason: unknown = signal.aborted ? signal.reason : error;
  if (signal.aborted) return reason instanceof AppError && reason.code === "cancelled";
  if (isStoreUnavailable(reason)) return false;
  return isLastAttempt || !(reason instanceof AppError && reason.retryable);
}

async function buildVersion(deps: RagDeps, context: WorkContext, document: DocumentRecord): Promise<IngestResult> {
  const { tenantId, recordId: documentId, signal } = context;
  const version = document.lastVersion;
  if (document.source.url !== undefined) await context.progress({ stage: "fetching", done: 0, total: 1 });
  const source = await inSpan(stage("fetch source"), () => fetchSource(deps, document, signal));
  if (source.bytes.length > TELL_BYTES) await context.progress({ stage: "parsing", done: 0, total: 1 });
  const read = await inSpan(stage("parse source"), () => deps.parser.read(source, { tenantId, signal }));
  const title = document.isTitleGiven ? document.title : (read.title ?? document.title);
  const isSmall = read.expected <= SINGLE_WRITE;
  const count = await writeChunks(deps, context, read, {
    caller: { tenantId, keyId: document.keyId, surface: "ingest", signal },
    documentId,
    version,
    title,
    isLive: isSmall,
    hasEarlier: version > 1,
  });
  if (count === 0) throw new AppError("source_unreadable", "The source cannot be read. There is no text in it.");
  if (!isSmall) await showAll(deps, context, { version, count });
  signal.throwIfAborted();
  const change = { version, chunks: count, type: read.type, title };
  const published = await deps.store.documents.publish(tenantId, documentId, change);
  if (!published) return superseded(deps, document);
  if (version > 1) await deps.store.chunks.remove(tenantId, { documentId, before: version });
  return { documentId, chunks: count, status: "indexed" };
}

/** A part of the work that a trace shows; the calls that embed have spans of their own. */
function stage(name: string): SpanStart {
  return { name, kind: "INTERNAL", attributes: {} };
}

/** Shows a version's chunks to searches, and makes sure that they are all there: a sweep may have taken the job for lost. */
async function showAll(
  deps: RagDeps,
  { tenantId, recordId: documentId }: WorkContext,
  written: { version: number; count: number },
) {
  const { version, count } = written;
  const shown = await deps.store.chunks.makeLive(tenantId, { documentId, version }, count);
  if (shown !== count)
    throw new AppError("unavailable", "Chunks of the document were removed meanwhile.", { retryable: true });
}

/** Embeds and writes what the child process gives, a few batches at a time, in order. Answers how many chunks there are. */
async function writeChunks(
  deps: RagDeps,
  context: WorkContext,
  read: { chunks: AsyncIterable<ChunkText[]>; expected: number },
  version: VersionContext,
): Promise<number> {
  let count = 0;
  const numbered = async function* () {
    for await (const texts of inBatches(read.chunks, EMBED_BATCH)) {
      yield { from: count, texts };
      count += texts.length;
    }
  };
  let done = 0;
  let toldAt = performance.now();
  const write = async (batch: { from: number; texts: readonly ChunkText[] }) => {
    version.caller.signal.throwIfAborted();
    const chunks = await embedChunks(deps, version, batch);
    await deps.store.chunks.insert(context.tenantId, chunks);
    return chunks.length;
  };
  for await (const written of mapOrdered(numbered(), EMBEDS_IN_FLIGHT, write)) {
    done += written;
    if (performance.now() - toldAt < TELL_EVERY_MS) continue;
    toldAt = performance.now();
    await context.progress({ stage: "embedding", done, total: Math.max(done, read.expected) });
  }
  return count;
}

/** The document went to a later version while this one was made, or it was deleted. This version is not needed any more. */
async function superseded(
  deps: RagDeps,
  { tenantId, _id: documentId, lastVersion }: DocumentRecord,
): Promise<IngestResult> {
  await deps.store.chunks.remove(tenantId, { documentId, version: lastVersion });
  const current = await deps.store.documents.get(tenantId, documentId);
  if (!current) throw deleted();
  return { documentId, chunks: current.chunks, status: "indexed" };
}

function deleted(): AppError {
  return new AppError("cancelled", "The document was deleted.");
}
