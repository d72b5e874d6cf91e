import { functionWords } from "../common-words.ts";

const MAX_TERMS = 64; // each costs the index a look-up

/**
 * The words of a query that a search for words is given: without those that say nothing (unless there are no others), none
 * twice, at most 64. The index stems them. A query without words comes back as it is.
 */
export function lexicalQuery(query: string): string {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? [])];
  const telling = words.filter((word) => !functionWords.has(word));
  const chosen = telling.length > 0 ? telling : words;
  return chosen.slice(0, MAX_TERMS).join(" ") || query;
}
