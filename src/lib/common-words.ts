import { readFileSync } from "node:fs";
import { stemmer } from "stemmer";

const functionText = `
a about above after again all also although am among amongst an and any are as at be because been before being below
between both but by can cannot could did do does doing done during each either else etc ever every few for from
further had has have having he hence her here hers herein him himself his how however i if in into is it its itself
just may me might more moreover most much must my neither nevertheless no non nor not now of off on once one only
onto or other our ours out over own per please same shall she should so some such than that the their theirs them then
there thereby therefore therein these they this those though through thus to too under until up upon us very via was
we were what when where whereas whether which while who whom whose why will with within without would yet you your
yours`;

/** Words of English that say nothing about a subject. */
export const functionWords: ReadonlySet<string> = new Set(functionText.trim().split(/\s+/));

/** Some 1,800 words of general English prose, the commonest first; inflected forms that share a stem with one are left out. */
const commonWords = new URL("./common-words.txt", import.meta.url);
/** Where content words begin among the words of English: function words come before. */
const FIRST_RANK = 60;
/** Weight of words that say nothing: enough to distinguish texts that have no others. */
const LEAST_WEIGHT = 0.02;

let weights: Map<string, number> | undefined;

/**
 * What a stem of English tells by how rare it is in general prose, from 0.02 to 1; a stem that is not common has 1. By Zipf's
 * law the word of rank r is each 10 r-th or so, and a passage of 200 words has it with probability 1 - exp(-20 / r): the
 * weight is its information, beside that of a word of rank 8,000.
 */
export function weightOfStem(stem: string): number {
  weights ??= weightsOfStems();
  return weights.get(stem) ?? 1;
}

function weightsOfStems(): Map<string, number> {
  const made = new Map<string, number>();
  for (const word of functionWords) made.set(stemmer(word), LEAST_WEIGHT);
  let rank = FIRST_RANK;
  const words = readFileSync(commonWords, "utf8").trim().split(/\s+/);
  for (const stem of new Set(words.map((word) => stemmer(word)))) {
    if (!made.has(stem)) made.set(stem, Math.min(1, -Math.log(1 - Math.exp(-20 / rank)) / 6));
    rank += 1;
  }
  return made;
}
