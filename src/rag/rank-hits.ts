import type { ChunkHit } from "../store/chunk.ts";
import type { TextHit } from "../store/chunk-search.ts";
import type { Candidates } from "./candidates.ts";
import { fuseRanks, shareOfRank } from "./fuse-ranks.ts";

const HALF_SURE = 6; // the word score (BM25) at which a chunk is relevant by one half: a rare word, or a few common ones
/**
 * What vectors count beside words if their model knows words alone, and the number of query words from which they do. Above a half
 * passages of manuals are lost that words have found; below it abstracts, whose queries are long.
 */
const MOST_WEIGHT = 0.56;
const ENOUGH_WORDS = 5;
/** Letters of scripts that put no spaces between words; two of them are about a word. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu;

/** A chunk with its place in the results: `score` falls from one to the next. */
export type Hit = ChunkHit & { score: number };

/** Further facts by which candidates are ranked. */
export type RankedBy = {
  /** The words that were searched for. */
  text: string;
  /** Whether an embedding model knows meanings, not only words; undefined if it is unknown. */
  isSemantic(model: string): boolean | undefined;
};

/** Makes one list of the candidates, best first, each with its score. */
export function rankHits({ byText, byVector }: Candidates, { text, isSemantic }: RankedBy): Hit[] {
  if (!byText) return rankByVectors(byVector ?? []);
  const relevance = relevanceOf(byText);
  if (!byVector) return byText.map(({ share, ...hit }) => ({ ...hit, score: relevance * share }));
  const best = Math.max(relevance, ...byVector.flat().map(cosineOf));
  const weights = [1];
  const near = new Set<string>();
  let behind = 0;
  for (const list of byVector) {
    const isOfWords = list[0] !== undefined && isSemantic(list[0].model) === false;
    const weight = isOfWords ? weightBeside(text) : 1;
    weights.push(weight);
    for (const { _id } of list) near.add(_id);
    // Vectors behind the last one that was found are not nearer to the query than those of a hit of words.
    if (isOfWords) behind = Math.max(behind, weight * shareOfRank(list.length + 1));
  }
  return fuse([byText, ...byVector], best, weights, ({ _id }) => (near.has(_id) ? 0 : behind));
}

/**
 * The ranked hits in the order in which a judge is to read them: the best of each search in turn, so that what one search alone
 * has found is read too.
 */
export function mixSearches(ranked: readonly Hit[], { byText = [], byVector = [] }: Candidates): Hit[] {
  const hitOf = new Map(ranked.map((hit) => [hit._id, hit]));
  const lists = [ranked, byText, ...byVector];
  const mixed = new Set<Hit>();
  for (let place = 0; place < ranked.length; place += 1) {
    for (const list of lists) {
      const hit = hitOf.get(list[place]?._id ?? "");
      if (hit) mixed.add(hit);
    }
  }
  return [...mixed];
}

/**
 * The weight of vectors that know words alone, beside the search for words: what the two find follows from the same words. The
 * fewer there are, the less vectors add to an exact search for them, and the more spellings that are alike by chance.
 */
function weightBeside(text: string): number {
  const words = text.split(" ").length + (text.match(unspaced)?.length ?? 0) / 2;
  return MOST_WEIGHT * Math.min(1, words / ENOUGH_WORDS);
}

/** Similarities compare within the space of one model; lists of several are united by rank. */
function rankByVectors(lists: readonly ChunkHit[][]): Hit[] {
  const [first = [], ...others] = lists.filter((list) => list.length > 0);
  if (others.length === 0) return first.map((hit) => ({ ...hit, score: hit.similarity }));
  return fuse([first, ...others], Math.max(...lists.flat().map(({ similarity }) => similarity)));
}

/** Lists of the same or of different chunks as one by their ranks, whose first hit has the score `best`. */
function fuse(
  lists: readonly (readonly ChunkHit[])[],
  best: number,
  weights?: readonly number[],
  sumOf?: (hit: ChunkHit) => number,
): Hit[] {
  const fused = fuseRanks<ChunkHit>(lists, (hit) => hit._id, weights, sumOf);
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
