import type { Binary } from "mongodb";
import { defined } from "../lib/defined.ts";
import type { TenantOwned } from "./collection.ts";

/** A passage of a document as queries find it. Several versions of a document's chunks may be there at a time. */
export type ChunkRecord = TenantOwned & {
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
  /** Its identifiers and quantities, each as one word, which searches for words look at too. Absent: it has none. */
  codes?: string;
  tokens: number;
  /** Hash of what was embedded, by which a later version takes over the embedding. */
  hash: string;
  page?: number;
  /** The headings above, outermost first. */
  headings?: readonly string[];
  /** The headings in one text, as earlier releases stored them. */
  heading?: string;
  /** float32 vector (BSON Binary subtype 9). */
  embedding: Binary;
  /** The model that made it; one model may make vectors of several lengths. */
  model: string;
};

/** A chunk that a search found; `similarity` is (1 + cosine) / 2 of its vector and the query's by the same model, 0 without one. */
export type ChunkHit = Pick<ChunkRecord, "documentId" | "version" | "content" | "model" | ChunkPlaceField> & {
  _id: string;
  similarity: number;
};

/** Fields that say where in its document a chunk is. */
type ChunkPlaceField = "n" | "page" | "headings" | "heading";

/** The path of headings in one text. */
export function toHeading(headings: readonly string[]): string {
  return headings.join(" > ");
}

/** Where a chunk is, as it is shown: its page, the path of headings, and the path in one text. */
export function placeOf({ page, headings, heading }: Pick<ChunkRecord, "page" | "headings" | "heading">) {
  const path = headings ?? heading?.split(" > ");
  return defined({ page, heading: path && toHeading(path), headings: path && [...path] });
}
