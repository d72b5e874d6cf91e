import { basename } from "node:path/posix";
import { AppError } from "../errors.ts";
import type { DocumentRecord } from "../store/document-store.ts";
import type { RagDeps } from "./deps.ts";
import type { RawSource } from "./parse/parse-source.ts";

/** The bytes of a document: fetched where it is a URL, else as they were given. @throws AppError as `GuardedFetch.get` does */
export async function fetchSource(
  deps: Pick<RagDeps, "store" | "fetcher">,
  document: DocumentRecord,
  signal: AbortSignal,
): Promise<RawSource> {
  const { source, tenantId } = document;
  if (source.url !== undefined) {
    const { url, bytes, type } = await deps.fetcher.get(source.url, signal);
    const name = basename(new URL(url).pathname);
    return { bytes, ...(type ? { type } : {}), ...(name ? { name } : {}) };
  }
  const bytes = await deps.store.sources.read(tenantId, document._id);
  if (!bytes) throw new AppError("source_unreadable", "The document's source is gone.");
  return { bytes, ...(source.type ? { type: source.type } : {}), ...(source.name ? { name: source.name } : {}) };
}
