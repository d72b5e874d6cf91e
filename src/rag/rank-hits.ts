import type { ChunkHit } from "../store/chunk.ts";
import type { TextHit } from "../store/chunk-search.ts";
import type { Candidates } from "./candidates.ts";
import { fuseRanks } from "./fuse-ranks.ts";

const HALF_SURE = 6; // the word score (BM25) at which a chunk is relevant by one half: a rare word, or a few common ones

/** A chunk with its place in the results: `score` falls from one to the next. */
export type Hit = ChunkHit & { score: number };

/** Makes one list of the candidates, best first, each with its score. */
export function rankHits({ byText, byVector }: Candidates): Hit[] {
  if (!byText) return rankByVectors(byVector ?? []);
  if (!byVector) return scoreFalling(byText);
  const best = Math.max(relevanceOf(byText), ...byVector.flat().map(cosineOf));
  return fuse([byText, ...byVector], best);
}

/** Similarities compare within the space of one model; lists of several are united by rank. */
function rankByVectors(lists: readonly ChunkHit[][]): Hit[] {
  const [first = [], ...others] = lists.filter((list) => list.length > 0);
  if (others.length === 0) return first.map((hit) => ({ ...hit, score: hit.similarity }));
  return fuse([first, ...others], Math.max(...lists.flat().map(({ similarity }) => similarity)));
}

/** Lists of the same or of different chunks as one by their ranks, whose first hit has the score `best`. */
function fuse(lists: readonly (readonly ChunkHit[])[], best: number): Hit[] {
  const fused = fuseRanks<ChunkHit>(lists, (hit) => hit._id);
  return fused.map(({ item, sum }) => ({ ...item, score: (best * sum) / (fused[0]?.sum ?? 1) }));
}

const cosineOf = ({ similarity }: ChunkHit) => Math.max(0, 2 * similarity - 1);

/**
 * The relevance of the best hit, from 0 to 1: by its vector, or by its words, whichever is more. The relevance by words grows
 * with the word score and never reaches 1. Scores of other hits are fractions of it, so they compare across queries.
 */
function relevanceOf(hits: readonly TextHit[]): number {
  return Math.max(0, ...hits.map((hit) => Math.max(cosineOf(hit), hit.wordScore / (hit.wordScore + HALF_SURE))));
}

/** Scores hits in their order. If an index is late, two lists are merged, and a hit may follow one of a lower word score. */
function scoreFalling(hits: readonly TextHit[]): Hit[] {
  const best = relevanceOf(hits);
  let share = 1;
  return hits.map((hit) => {
    share = Math.min(share, hit.wordScore / (hits[0]?.wordScore || 1));
    return { ...hit, score: best * share };
  });
}
