import type { ErrorCode } from "../errors.ts";
import type { SourceType } from "./schemas.ts";
import type { ChunkText } from "./split.ts";

/** What the host sends to a parsing thread: one source at a time. */
export type ParseRequest = { id: number; bytes: Uint8Array; type?: string; name?: string };

/** What a parsing thread answers: the outline, then chunks in batches, then the end; or an error at any time. */
export type ParseReply =
  | { id: number; kind: "outline"; title?: string; type: SourceType; passages: number }
  | { id: number; kind: "chunks"; chunks: ChunkText[] }
  | { id: number; kind: "end" }
  | { id: number; kind: "error"; code: ErrorCode; message: string; cause: string };

/** Chunks of one document at most; a document with more is refused. */
export const MAX_CHUNKS = 50_000;
