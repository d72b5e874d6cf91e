import { isUtf8 } from "node:buffer";
import { extname } from "node:path/posix";
import type { DocumentRecord } from "../store/document-record.ts";
import { type PolicyGuard, requireClearBy, takeBy } from "../tenancy/guard-policies.ts";
import type { RagDeps } from "./deps.ts";
import type { NewDocument } from "./record-source.ts";

type Described = { url?: string; externalId?: string; title?: string; metadata?: object; tags?: unknown };

/** Files that are texts as they stand. */
const textTypes = /^(?:text\/|application\/(?:json|xml|x-ndjson|xhtml\+xml))/;
const textEndings = new Set([
  ".txt",
  ".md",
  ".markdown",
  ".csv",
  ".tsv",
  ".html",
  ".htm",
  ".json",
  ".jsonl",
  ".xml",
  ".log",
]);

/**
 * A document as it may be kept: its title, text, metadata and tags, and a file that is a text. What has to be parsed first is
 * guarded by its passages. Its address and its ids must hold nothing that is masked or blocked.
 * @throws AppError `compliance_blocked`, `unavailable`.
 */
export async function guardDocument({ guards }: Pick<RagDeps, "guards">, { caller, document }: NewDocument) {
  const guard = await guards.forCall(caller);
  if (guard === undefined) return document;
  const { url, title, metadata, tags, externalId } = document as Described; // as far as it has them
  requireClearBy(guard, "ingest", { url, externalId });
  const texts = { title, metadata, tags, ...("content" in document ? { content: document.content } : {}) };
  const given = Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== undefined));
  const guarded = { ...document, ...(await takeBy(guard, "ingest", given)) };
  return "file" in guarded ? { ...guarded, file: await guardFile(guard, guarded.file) } : guarded;
}

/** A file with its name and, if it is a text, its bytes guarded. */
async function guardFile<F extends { bytes: Buffer; name?: string; type?: string }>(
  guard: PolicyGuard,
  file: F,
): Promise<F> {
  const { name = "", type = "", bytes } = file;
  const isNamedText = textTypes.test(type) || textEndings.has(extname(name).toLowerCase());
  const said = isNamedText && isUtf8(bytes) ? bytes.toString("utf8") : "";
  const own = await takeBy(guard, "ingest", { name, said });
  return {
    ...file,
    ...(name !== "" && { name: own.name }),
    ...(own.said !== said && { bytes: Buffer.from(own.said) }),
  };
}

type Whose = { tenantId: string; keyId: string };

/** Passages, and other texts of a document, as they may be kept. @throws as `guardDocument`. */
export const guardRead = <T>({ guards }: Pick<RagDeps, "guards">, { tenantId, keyId }: Whose, texts: T): Promise<T> =>
  guards.take({ tenantId, keyId }, "ingest", texts);

/**
 * Removes the source that a document was made from if the tenant's guards mask or block anything in documents: nothing of a file shows
 * what it says before it is parsed, and nothing reads it once its job has ended. A file of `/v1/files` stays there.
 */
export async function dropGuardedSource(
  { guards, store }: Pick<RagDeps, "guards" | "store">,
  { tenantId, keyId, _id, source, sourceId = _id }: DocumentRecord,
): Promise<void> {
  if (source.url !== undefined || source.fileId !== undefined) return;
  const guard = await guards.forCall({ tenantId, keyId });
  if (guard?.has("ingest", "mask", "block")) await store.sources.remove(tenantId, sourceId);
}
