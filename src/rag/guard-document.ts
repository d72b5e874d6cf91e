import { extname } from "node:path/posix";
import type { RagDeps } from "./deps.ts";
import type { NewDocument } from "./record-source.ts";
import type { ChunkText } from "./split.ts";

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
 * guarded by its passages. @throws AppError `compliance_blocked`, `unavailable`.
 */
export async function guardDocument({ guards }: Pick<RagDeps, "guards">, { caller, document }: NewDocument) {
  const { title, metadata, tags } = document as { title?: string; metadata?: object; tags?: unknown }; // as far as it has them
  const texts = { title, metadata, tags, ...("content" in document ? { content: document.content } : {}) };
  const given = Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== undefined));
  const guarded = { ...document, ...(await guards.take(caller, "ingest", given)) };
  if (!("file" in guarded)) return guarded;
  const { name = "", type = "", bytes } = guarded.file;
  const isText = textTypes.test(type) || textEndings.has(extname(name).toLowerCase());
  const said = bytes.toString("utf8");
  const own = await guards.take(caller, "ingest", { name, ...(isText && { said }) });
  const file = { ...guarded.file, ...(name !== "" && { name: own.name }) };
  return {
    ...guarded,
    file: own.said === undefined || own.said === said ? file : { ...file, bytes: Buffer.from(own.said) },
  };
}

/** Passages as they may be kept. @throws as `guardDocument`. */
export const guardChunks = (
  { guards }: Pick<RagDeps, "guards">,
  whose: { tenantId: string; keyId: string },
  chunks: readonly ChunkText[],
): Promise<readonly ChunkText[]> => guards.take(whose, "ingest", chunks);
