import type { Binary } from "mongodb";
import type { TenantDocument } from "./collection.ts";

/** A passage of a document as queries find it. Several versions of a document's chunks may be there at a time. */
export type ChunkDocument = TenantDocument & {
  documentId: string;
  /** Absent in the collection `default`. */
  collection?: string;
  version: number;
  /** From 0, in the order of the document. */
  n: number;
  /** Whether searches see it. The document's own version decides in the end which chunks count. */
  live: boolean;
  liveAt?: Date;
  /** The document's title, and the headings above: searches for words look at it beside the content. */
  title: string;
  content: string;
  tokens: number;
  /** Hash of what was embedded, by which a later version takes over the embedding. */
  hash: string;
  page?: number;
  heading?: string;
  /** float32 vector (BSON Binary subtype 9). */
  embedding: Binary;
  /** The model that made it; one model may make vectors of several lengths. */
  model: string;
};

/** A chunk that a search found; `similarity` is (1 + cosine) / 2 of its vector and the query's by the same model, 0 without one. */
export type ChunkHit = Pick<ChunkDocument, "documentId" | "version" | "content" | "model"> & {
  _id: string;
  page?: number;
  heading?: string;
  similarity: number;
};
