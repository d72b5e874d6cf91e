import { functionWords } from "../common-words.ts";

/** English words with `n't`, and what else it writes after an apostrophe: alone, an `s` is in every text that has code. */
const contraction = /(?<!\p{L})\p{L}+n['’]t(?!\p{L})|(?<=\p{L})['’](?:s|d|m|ll|re|ve)(?!\p{L})/gu;
const MAX_TERMS = 64; // words of a query; each costs the index a look-up

/**
 * Returns the words of a query for a lexical search: without function words (unless there are no others), without
 * repetitions, at most 64. The index stems them. A query without words is returned as it is.
 */
export function lexicalQuery(query: string): string {
  const words = [
    ...new Set(
      query
        .toLowerCase()
        .replace(contraction, "")
        .match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? [],
    ),
  ];
  const significant = words.filter((word) => !functionWords.has(word));
  const chosen = significant.length > 0 ? significant : words;
  return chosen.slice(0, MAX_TERMS).join(" ") || query;
}
