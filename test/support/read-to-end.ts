import { AppError } from "../../src/lib/errors.ts";
import type { RawSource } from "../../src/rag/parse/parse-source.ts";
import type { ParsePool } from "../../src/rag/parse-in-child.ts";

/** Reads a source and answers how that ends: with so many chunks, with the reason of a refusal, or unexpectedly. */
export async function readToEnd(pool: ParsePool, source: RawSource, tenantId = "acme"): Promise<string> {
  let chunks = 0;
  try {
    const read = await pool.read(source, { tenantId, signal: new AbortController().signal });
    for await (const batch of read.chunks) chunks += batch.length;
    return `${chunks} chunks`;
  } catch (error) {
    const isRejection =
      error instanceof AppError && (error.code === "source_unreadable" || error.code === "request_too_large");
    return `${isRejection ? "" : "unexpected: "}${error}`;
  }
}
