import { functionWords } from "../lib/common-words.ts";
import { foldText } from "./fold-text.ts";
import { identifierKeys } from "./identifiers.ts";

/** English words with `n't`, and what else it writes after an apostrophe: alone, an `s` is in every text that has code. */
const contraction = /(?<!\p{L})\p{L}+n['’]t(?!\p{L})|(?<=\p{L})['’](?:s|d|m|ll|re|ve)(?!\p{L})/gu;
const MAX_TERMS = 64; // maximum words of a query; each costs the index a look-up

/** The words of a query in lower case, each once, without function words, unless there are no others. */
export function wordsOf(query: string): string[] {
  const words = [
    ...new Set(
      foldText(query)
        .toLowerCase()
        .replace(contraction, "")
        .match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? [],
    ),
  ];
  const significant = words.filter((word) => !functionWords.has(word));
  return significant.length > 0 ? significant : words;
}

/**
 * Returns the words of a query for a lexical search: without function words (unless there are no others), without
 * repetitions, with its identifiers as chunks have them, at most 64. The index stems them. A query without words is returned as
 * it is.
 */
export function lexicalQuery(given: string): string {
  const query = foldText(given);
  const keys = identifierKeys(query, { isQuery: true });
  return [...new Set([...keys, ...wordsOf(query)])].slice(0, MAX_TERMS).join(" ") || query;
}
