import type { TextHit } from "../store/chunk-search.ts";
import { measureNearness } from "./word-nearness.ts";

/** First hits that are looked through for words near to each other, and what that counts beside the word score. */
const LOOKED_THROUGH = 30;
const NEARNESS_WEIGHT = 0.5;

/** A hit by words with its share of what the best one has: 1 at first, then falling. */
export type WordHit = TextHit & { share: number };

/**
 * Favours those of the index's hits whose words stand near to each other: such a chunk is more likely to be about all of them at
 * once. If an index is late, two lists are merged, and a hit may follow one of a lower word score: its share falls all the same.
 */
export function rankByWords(hits: readonly TextHit[], text: string): WordHit[] {
  let least = 1;
  const falling = hits.map((hit) => {
    least = Math.min(least, hit.wordScore / (hits[0]?.wordScore || 1));
    return { ...hit, share: least };
  });
  const words = text.split(" ");
  if (words.length < 2) return falling;
  const first = falling.slice(0, LOOKED_THROUGH).map(({ content }) => content);
  const nearness = measureNearness(words, first);
  const moved = falling.map((hit, at) => ({ ...hit, share: hit.share + NEARNESS_WEIGHT * (nearness[at] ?? 0) }));
  moved.sort((a, b) => b.share - a.share);
  const most = moved[0]?.share || 1;
  return moved.map((hit) => ({ ...hit, share: hit.share / most }));
}
