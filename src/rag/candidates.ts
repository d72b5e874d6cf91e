import type { ChunkHit } from "../store/chunk.ts";
import type { TextHit } from "../store/chunk-search.ts";
import type { CollectionNames } from "../store/collection-filter.ts";
import type { RagDeps } from "./deps.ts";
import { withFeedback } from "./feedback.ts";
import type { QueryInput } from "./schemas.ts";

const EXTRA_HITS = 10; // beyond topK, since hits of outdated versions are dropped
const FUSED_DEPTH = 3; // hits of each list that hybrid ranks, as a multiple of topK
export const MIN_FUSED = 100;

/** What the store is searched for. */
export type Search = {
  text: string;
  vector: Float32Array;
  documentIds?: readonly string[];
  collections?: CollectionNames;
};

/** The lists of chunks that the searches of a mode gave, each with its best first. A mode without a search has no list of it. */
export type Candidates = { byText?: TextHit[]; byVector?: ChunkHit[] };

/** How many hits each search is asked for first. */
export function depthOf({ mode, topK }: Pick<QueryInput, "mode" | "topK">): number {
  return mode === "hybrid" ? Math.max(MIN_FUSED, FUSED_DEPTH * topK) : topK + EXTRA_HITS;
}

/** Searches by words, by vectors, or by both; then the first hits by words move the vector that is searched for. */
export async function findCandidates(
  { store: { chunks } }: Pick<RagDeps, "store">,
  tenantId: string,
  { mode, ...search }: Search & { mode: QueryInput["mode"]; limit: number },
): Promise<Candidates> {
  if (mode === "vector") return { byVector: await chunks.searchVectors(tenantId, search) };
  const byText = await chunks.searchText(tenantId, search);
  if (mode === "lexical") return { byText };
  const vector = withFeedback(
    search.vector,
    byText.flatMap(({ embedding }) => (embedding ? [embedding] : [])),
  );
  return { byText, byVector: await chunks.searchVectors(tenantId, { ...search, vector, scoreBy: search.vector }) };
}
