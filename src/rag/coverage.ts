import { stemmer } from "stemmer";
import { identifierKeys } from "./identifiers.ts";
import { wordsOf } from "./query-words.ts";
import { findWords, type Holders, rarityOf } from "./word-nearness.ts";

/** Passages that one answer may stand in: the first ones; and those of which it may take two. */
const FIRST = 5;
const PAIR = 2;
/** Words of a question that are looked for. */
const MAX_WORDS = 32;

/** Letters of scripts that put no spaces between words. */
const unspacedRun =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]{2,}/gu;

/** The share of a question's words that each passage has, and that the best passages have. */
export type Coverage = { each: number[]; best: number };

/**
 * Measures which share of a question's words passages have, best passages first. A word counts by how rare it is in English and
 * among the hits of the search; an identifier, as `E-04`, counts as one more word. `best` is the mean of what one of the first
 * five has and what the first two have together: of a question that no passage answers, several have some words each.
 */
export function measureCoverage(question: string, passages: readonly string[], holders?: Holders): Coverage {
  const each = new Array<number>(passages.length).fill(0);
  let [all, pair] = [0, 0];
  for (const { stem, isIn } of termsOf(question, passages)) {
    const weight = rarityOf(stem, holders?.get(stem) ?? isIn.filter(Boolean).length);
    all += weight;
    const first = isIn.indexOf(true);
    if (first >= 0 && first < PAIR) pair += weight;
    for (const at of each.keys()) if (isIn[at]) each[at] = (each[at] ?? 0) + weight;
  }
  const most = all || 1;
  for (const [at, weight] of each.entries()) each[at] = Math.min(1, weight / most);
  return { each, best: Math.min(1, (Math.max(0, ...each.slice(0, FIRST)) + pair / most) / 2) };
}

/** A word of the question, and whether each of the passages has it. */
type Term = { stem: string; isIn: boolean[] };

/**
 * The words of a question. Pairs of letters stand for those of scripts without spaces, as in the index; identifiers have the
 * form that they have there.
 */
function termsOf(question: string, texts: readonly string[]): Term[] {
  const words = wordsOf(question.replace(unspacedRun, " ")).slice(0, MAX_WORDS);
  const found = findWords(words, texts);
  const terms: Term[] = [];
  for (const [at, word] of words.entries()) {
    const isIn: boolean[] = [];
    for (const has of found) isIn.push(has[at] === true);
    terms.push({ stem: stemmer(word), isIn });
  }
  const runs = question.match(unspacedRun);
  if (runs) terms.push(...findPairs(runs, texts));
  const keys = identifierKeys(question).slice(0, MAX_WORDS);
  return keys.length > 0 ? [...terms, ...findKeys(keys, texts)] : terms;
}

function findPairs(runs: readonly string[], texts: readonly string[]): Term[] {
  const pairs = runs.flatMap((run) => [...run].slice(1).map((letter, at) => `${[...run][at]}${letter}`));
  const chosen = [...new Set(pairs)].slice(0, MAX_WORDS);
  return chosen.map((stem) => ({ stem, isIn: texts.map((text) => text.includes(stem)) }));
}

function findKeys(keys: readonly string[], texts: readonly string[]): Term[] {
  const found = texts.map((text) => new Set(identifierKeys(text)));
  return keys.map((stem) => ({ stem, isIn: found.map((held) => held.has(stem)) }));
}
