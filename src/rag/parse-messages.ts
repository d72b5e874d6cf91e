import type { SourceType } from "./schemas.ts";
import type { ChunkText } from "./split.ts";

/** A source that a child process is to read. */
export type ParseRequest = { bytes: Uint8Array; type?: string; name?: string };

/** What it answers: the outline, then chunks in batches. */
export type ParsePart =
  | { kind: "outline"; title?: string; type: SourceType; passages: number }
  | { kind: "chunks"; chunks: ChunkText[] };

/** Chunks of one document at most; a document with more is refused. */
export const MAX_CHUNKS = 50_000;
