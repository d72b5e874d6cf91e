import { stemmer } from "stemmer";
import { weightOfStem } from "../lib/common-words.ts";

/** Words that stand within this many characters are near: about a line, or eight words of English. */
const NEAR = 60;
/** Places of one word in a text that are looked at. */
const MAX_PLACES = 50;

/** A word of the query in a text: its number among them, and where it begins. */
type Place = { at: number; word: number };

/** In how many of a search's first hits each stem of a query is: the rarity of its words, as far as the search has seen it. */
export type Holders = ReadonlyMap<string, number>;

/** Hits of a search that are looked through for its words. */
export const LOOKED_THROUGH = 30;
/** Hits among which a word would be as rare as it is among those: what all of them have is not in every passage. */
const AMONG = 1.5 * LOOKED_THROUGH;

/**
 * What a word tells, by how rare it is in English and among the first hits of a search, of which so many have it: the latter as
 * BM25 counts it.
 */
export function rarityOf(stem: string, holders: number): number {
  const seen = Math.min(holders, LOOKED_THROUGH);
  return Math.sqrt(weightOfStem(stem)) * Math.log(1 + (AMONG - seen + 0.5) / (seen + 0.5));
}

/**
 * Measures how near to each other texts have the words of a query: the share of the words that are found within one line, from
 * 0 to 1. Rare words of English count more than common ones; a word that no text has does not count. Words are compared by
 * their stems, as the index compares them. Counts the texts that have each of them, too.
 */
export function measureNearness(
  words: readonly string[],
  texts: readonly string[],
): { nearness: number[]; holders: Holders } {
  const stems = new Map(words.map((word) => [stemmer(word), word]));
  const searched = Array.from(stems, ([stem, word]) => ({ stem, prefix: commonStart(word, stem) }));
  const isOfStem = makeStemTest();
  const places = texts.map((text) => {
    const lower = text.toLowerCase();
    return searched
      .flatMap(({ stem, prefix }, word) => placesOf(lower, prefix, (found) => isOfStem(found, stem), word))
      .sort((a, b) => a.at - b.at);
  });
  const counts = new Array<number>(searched.length).fill(0);
  for (const found of places) {
    const seen = new Set<number>();
    for (const { word } of found) if (!seen.has(word) && seen.add(word)) counts[word] = (counts[word] ?? 0) + 1;
  }
  const weights = searched.map(({ stem }, word) => (counts[word] ? weightOfStem(stem) : 0));
  const all = weights.reduce((sum, weight) => sum + weight, 0) || 1;
  const holders = new Map<string, number>();
  for (const [word, { stem }] of searched.entries()) holders.set(stem, counts[word] ?? 0);
  return {
    nearness: places.map((found) => heaviestLine(found, weights) / all),
    holders,
  };
}

/** Finds out, for each text, which of the words it has, by their stems. */
export function findWords(words: readonly string[], texts: readonly string[]): boolean[][] {
  const isOfStem = makeStemTest();
  const found: boolean[][] = texts.map(() => []);
  const lower = texts.map((text) => text.toLowerCase());
  for (const word of words) {
    const stem = stemmer(word);
    const prefix = commonStart(word, stem);
    const isWanted = (other: string) => isOfStem(other, stem);
    for (const [at, text] of lower.entries()) found[at]?.push(placesOf(text, prefix, isWanted, 0, 1).length > 0);
  }
  return found;
}

/** What two words begin with, at least one character. */
function commonStart(a: string, b: string): string {
  let length = 1;
  while (length < b.length && a[length] === b[length]) length += 1;
  return a.slice(0, length);
}

/** Tells whether a word has a stem; texts repeat their words, so stems are remembered. */
function makeStemTest() {
  const stems = new Map<string, string>();
  return (word: string, stem: string) => {
    const known = stems.get(word) ?? stemmer(word);
    stems.set(word, known);
    return known === stem;
  };
}

function placesOf(
  text: string,
  prefix: string,
  isWanted: (word: string) => boolean,
  word: number,
  most = MAX_PLACES,
): Place[] {
  const places: Place[] = [];
  for (let at = text.indexOf(prefix); at !== -1; at = text.indexOf(prefix, at + prefix.length)) {
    if (isOfWord(text.charCodeAt(at - 1))) continue;
    let end = at + prefix.length;
    while (isOfWord(text.charCodeAt(end))) end += 1;
    if (isWanted(text.slice(at, end)) && places.push({ at, word }) === most) break;
  }
  return places;
}

/** Whether a UTF-16 code unit belongs to a word: of ASCII letters and digits, of the rest all but signs and punctuation. */
function isOfWord(code: number): boolean {
  if (code < 0x80) return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
  return code >= 0xc0 && (code < 0x2000 || code > 0x206f) && (code < 0x3000 || code > 0x303f);
}

/** The largest weight of different words that begin within one line. */
function heaviestLine(places: readonly Place[], weights: readonly number[]): number {
  const counts = weights.map(() => 0);
  let [sum, most, from] = [0, 0, 0];
  for (const { at, word } of places) {
    if (counts[word] === 0) sum += weights[word] ?? 0;
    counts[word] = (counts[word] ?? 0) + 1;
    for (let first = places[from]; first && at - first.at > NEAR; first = places[from]) {
      counts[first.word] = (counts[first.word] ?? 0) - 1;
      if (counts[first.word] === 0) sum -= weights[first.word] ?? 0;
      from += 1;
    }
    most = Math.max(most, sum);
  }
  return most;
}
