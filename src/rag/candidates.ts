import { defined } from "../lib/defined.ts";
import type { ChunkHit } from "../store/chunk.ts";
import type { TextHit, VectorHits, VectorSearch } from "../store/chunk-search.ts";
import type { CollectionNames } from "../store/collection-filter.ts";
import { SearchUnavailable } from "../store/store-errors.ts";
import type { RagDeps } from "./deps.ts";
import type { QueryVector } from "./embed-query.ts";
import type { QueryInput } from "./query-schemas.ts";
import { type Holders, LOOKED_THROUGH, measureNearness } from "./word-nearness.ts";

/** Hits beyond topK, since hits of outdated versions and repeated texts are dropped. Lexical hits are also reordered. */
const EXTRA_HITS = { lexical: 10, vector: 5 };
const FUSED_DEPTH = 3; // hits of each list that hybrid ranks, as a multiple of topK
export const MIN_FUSED = 100;

/** The query for the store. */
export type Search = {
  text: string;
  vectors: readonly QueryVector[];
  documentIds?: readonly string[];
  collections?: CollectionNames;
  joined?: VectorSearch["joined"];
};

/**
 * Ranked candidates: one list from lexical search, one per embedding model; absent if the mode skips that search. `holders`:
 * of the first hits by words. Headers and spaces are those that a search for vectors has read.
 */
export type Candidates = {
  byText?: WordHit[];
  holders?: Holders;
  byVector?: ChunkHit[][];
  warnings?: string[];
} & Pick<VectorHits, "headers" | "spaces">;

/** Number of hits that each search is asked for at first. */
export function depthOf({ mode, topK }: Pick<QueryInput, "mode" | "topK">): number {
  return mode === "hybrid" ? Math.max(MIN_FUSED, FUSED_DEPTH * topK) : topK + EXTRA_HITS[mode];
}

/** Searches by words, by vectors, or by both. With both, the first lexical hits move the query's vectors. */
export async function findCandidates(
  { store: { chunks } }: Pick<RagDeps, "store">,
  tenantId: string,
  { mode, text, vectors, ...where }: Search & { mode: QueryInput["mode"]; limit: number },
): Promise<Candidates> {
  const byModel = new Map(vectors.map(({ model, vector }) => [model, vector]));
  const findText = async () =>
    rankByWords(await chunks.searchText(tenantId, { ...where, text, vectors: byModel }), text);
  if (mode === "lexical") {
    const { hits, ...found } = await findText();
    return { byText: hits, ...found };
  }
  const warnings: string[] = [];
  // Two searches answer the question: while the index of one is away, the other goes on.
  const unlessAway = async <T>(search: () => Promise<T>, warning: string): Promise<T | undefined> => {
    try {
      return await search();
    } catch (error) {
      if (mode !== "hybrid" || !(error instanceof SearchUnavailable) || warnings.length > 0) throw error;
      warnings.push(warning);
      return undefined;
    }
  };
  const { hits: byText = [], ...words } =
    (mode === "hybrid" &&
      (await unlessAway(findText, "The index of words is away: the results are those of vectors."))) ||
    {};
  const search = ({ vector: scoreBy, dimensions, ...space }: QueryVector) => {
    const vector = withFeedback(
      scoreBy,
      byText.flatMap(({ model, embedding }) => (model === space.model && embedding ? [embedding] : [])),
    );
    return chunks.searchVectors(tenantId, { ...where, ...space, vector, ...(vector === scoreBy ? {} : { scoreBy }) });
  };
  const findVectors = async () => {
    // Documents move to the present model, so that comes last: a document that moves meanwhile is found by one of the two.
    const former = await Promise.all(vectors.slice(0, -1).map(search));
    const present = await Promise.all(vectors.slice(-1).map(search));
    return [...present, ...former];
  };
  const found = await unlessAway(findVectors, "The index of vectors is away: the results are those of words.");
  if (found === undefined) return { byText, warnings, ...words };
  const byVector = found.map(({ hits }) => hits);
  const headers = found.flatMap((one) => one.headers ?? []);
  const spaces = found[0]?.spaces;
  return { ...(mode === "vector" ? {} : { byText }), byVector, headers, warnings, ...words, ...defined({ spaces }) };
}

/** What words near to each other count beside the word score. */
const NEARNESS_WEIGHT = 0.5;

/** A lexical hit with its score as a share of the best one: 1 for the first, then falling. */
type WordHit = TextHit & { share: number };

/**
 * Favours those of the index's hits whose words stand near to each other: such a chunk is more likely to be about all of them at
 * once. If an index is late, two lists are merged, and a hit may follow one of a lower word score: its share falls all the same.
 */
export function rankByWords(hits: readonly TextHit[], text: string): { hits: WordHit[]; holders?: Holders } {
  let least = 1;
  const falling = hits.map((hit) => {
    least = Math.min(least, hit.wordScore / (hits[0]?.wordScore || 1));
    return { ...hit, share: least };
  });
  const words = text.split(" ");
  if (words.length < 2) return { hits: falling };
  const first = falling.slice(0, LOOKED_THROUGH).map(({ content }) => content);
  const { nearness, holders } = measureNearness(words, first);
  const moved = falling.map((hit, at) => ({ ...hit, share: hit.share + NEARNESS_WEIGHT * (nearness[at] ?? 0) }));
  moved.sort((a, b) => b.share - a.share);
  const most = moved[0]?.share || 1;
  return { hits: moved.map((hit) => ({ ...hit, share: hit.share / most })), holders };
}

/** The first hits of a lexical search are assumed to be relevant, the second half as much as the first. */
const SHARES = [1, 0.5];
/** The weight of these hits together, relative to the query. */
const FEEDBACK_WEIGHT = 2;

/**
 * Moves the query's vector towards the chunks that match its words best: Rocchio's method with pseudo-relevance feedback
 * (Rocchio 1971). A short query carries little meaning; together with the first hits, the vector search also finds chunks that
 * say the same in other words.
 */
function withFeedback(query: Float32Array, chunks: readonly Float32Array[]): Float32Array {
  const used = chunks.filter((chunk) => chunk.length === query.length).slice(0, SHARES.length);
  if (used.length === 0) return query;
  const mean = new Float32Array(query.length);
  for (const [place, share] of SHARES.entries())
    for (const [at, value] of used[place]?.entries() ?? []) mean[at] = (mean[at] ?? 0) + share * value;
  const [queryLength, meanLength] = [lengthOf(query), lengthOf(mean)];
  return query.map((value, at) => value / queryLength + (FEEDBACK_WEIGHT * (mean[at] ?? 0)) / meanLength);
}

/** Length of a vector; 1 for a vector of zeros, so that a division keeps it. */
const lengthOf = (vector: Float32Array) => Math.hypot(...vector) || 1;
