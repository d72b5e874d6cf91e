import { functionWords } from "../../../lib/common-words.ts";
import { makeTextMeter } from "../../../lib/in-slices.ts";

/** Longest text that is looked through for sentences, in characters; of a longer one, the start and the end. */
const MAX_TEXT = 400_000;
/** Sentences that are ranked, at most. */
const MAX_SENTENCES = 4_000;
/** A piece without a full stop is cut here, in characters. */
const MAX_SENTENCE = 600;
/** How much of a match counts when only the beginning of the word is the same. */
const STEM_LENGTH = 5;

/** The words of a text that say something about its subject, lower case, plural and tense endings cut off. */
export function contentWords(text: string): string[] {
  const words =
    bounded(text)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.filter((word) => word.length > 1 && !functionWords.has(word)).map(cutEnding);
}

function cutEnding(word: string): string {
  if (word.length <= STEM_LENGTH) return word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word;
  return word.replace(/(?:ations?|ings?|edly|ed|ies|ers?|es|s|ly)$/, "").slice(0, 12);
}

/** Sentences of a text in order, each once; headings, list items and lines of their own count as sentences. */
export function toSentences(text: string): string[] {
  const sentences = new Set<string>();
  for (const line of bounded(text).split(/\n+/)) {
    for (const part of line.split(/(?<=[.!?])\s+(?=["'(\p{Lu}\p{N}])/u)) {
      const sentence = cutText(part.replace(/^[\s#>*\-\u2022]+/, "").trim(), MAX_SENTENCE);
      if (sentence.length > 1) sentences.add(sentence);
      if (sentences.size >= MAX_SENTENCES) return [...sentences];
    }
  }
  return [...sentences];
}

/** The first characters of a text, without the half of a character at the end. */
export function cutText(text: string, length: number): string {
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, "");
}

function bounded(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT / 2)}\n${text.slice(-MAX_TEXT / 2)}`;
}

export type Ranked = { sentence: string; index: number; score: number };

/** Sentences that share words with the question, best first: rare words count most, long sentences are discounted. */
export function* rankSentences(sentences: readonly string[], question: string): Generator<void, Ranked[]> {
  const asked = new Set(contentWords(question));
  const isDue = makeTextMeter();
  const words: string[][] = [];
  for (const sentence of sentences) {
    words.push(contentWords(sentence));
    if (isDue(sentence.length)) yield;
  }
  const frequency = new Map<string, number>();
  for (const list of words) for (const word of new Set(list)) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  const ranked = words.flatMap((list, index): Ranked[] => {
    const shared = [...new Set(list)].filter((word) => asked.has(word));
    const weight = shared.reduce((sum, word) => sum + Math.log(1 + sentences.length / (frequency.get(word) ?? 1)), 0);
    const sentence = sentences[index] ?? "";
    const score = (weight * kindWeight(sentence)) / (1 + Math.log(1 + list.length / 20));
    return score > 0 ? [{ sentence, index, score }] : [];
  });
  return ranked.sort((a, b) => b.score - a.score || a.index - b.index);
}

/** A whole statement answers better than a heading or a fragment, those better than a question; a reference never does. */
function kindWeight(sentence: string): number {
  if (/^\[.*\]$/.test(sentence)) return 0;
  if (sentence.endsWith("?")) return 0.3;
  return /^[\p{Lu}\p{N}"'(/].*[.!:]["')\]]*$/u.test(sentence) ? 1 : 0.5;
}
