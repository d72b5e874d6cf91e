import { weightOfStem } from "../lib/common-words.ts";
import { wordsOf } from "./query-words.ts";
import { findWords } from "./word-nearness.ts";

/** Longest quote, in characters. */
const MAX_QUOTE = 600;
/** Sentences of a passage that are compared with a statement. */
const MAX_SENTENCES = 200;
/** Words of a statement that are looked for. */
const MAX_WORDS = 40;

/** Sentences end with a stop, with a paragraph, and before an item of a list or a row of a table. */
const sentenceEnd = /(?<=[.!?])\s+|\n\s*\n|\n(?=\s*(?:[-*•|#>]|\d+[.)]\s))/;

const sameSigns: Record<string, string> = { "‘": "'", "’": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-" };

/** A text in small letters, without emphasis and with single spaces, and where each of its letters stands in the text. */
function plain(text: string): { letters: string; places: number[] } {
  let letters = "";
  const places: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at] ?? "";
    if (sign === "*" || sign === "`" || sign === "_") continue;
    const isSpace = /\s/.test(sign);
    if (isSpace && (letters === "" || letters.endsWith(" "))) continue;
    const [letter = ""] = isSpace ? " " : (sameSigns[sign] ?? sign).toLowerCase();
    letters += letter;
    places.push(at);
  }
  return { letters, places };
}

/**
 * The words of a passage that a model says it quotes, as the passage has them, with single spaces; undefined if the passage does
 * not have them. White space, case, emphasis and the form of quotation marks and dashes make no difference. Of a quote with an
 * ellipsis, its longest part counts.
 */
export function findQuote(passage: string, quoted: string): string | undefined {
  const wanted = quoted
    .slice(0, MAX_QUOTE)
    .split(/…|\.\.\./)
    .map((part) => plain(part).letters.trim());
  const [longest = ""] = wanted.toSorted((a, b) => b.length - a.length);
  if (longest.length < 2) return undefined;
  const { letters, places } = plain(passage);
  const from = letters.indexOf(longest);
  if (from < 0) return undefined;
  const end = (places[from + longest.length - 1] ?? 0) + 1;
  return toQuote(passage.slice(places[from], end));
}

/** The sentence of a passage that has most of a statement's words, and which share of them, weighed by how rare they are. */
export function findSentence(passage: string, statement: string): { quote: string; share: number } | undefined {
  const words = wordsOf(statement).slice(0, MAX_WORDS);
  const sentences = passage
    .split(sentenceEnd)
    .map((sentence) => toQuote(sentence.replace(/^[\s#>*•-]+/, "")))
    .filter((sentence) => sentence.length > 2)
    .slice(0, MAX_SENTENCES);
  const weights = words.map(weightOfStem);
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  let best: { quote: string; share: number } | undefined;
  for (const [at, has] of findWords(words, sentences).entries()) {
    const share = all === 0 ? 0 : weights.reduce((sum, weight, word) => sum + (has[word] ? weight : 0), 0) / all;
    if (share > (best?.share ?? 0)) best = { quote: sentences[at] ?? "", share };
  }
  return best;
}

const toQuote = (text: string) => text.replace(/\s+/g, " ").trim().slice(0, MAX_QUOTE);
