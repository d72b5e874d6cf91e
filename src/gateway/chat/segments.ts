import { makeTextMeter } from "../../lib/in-slices.ts";

/** A stretch of a text: a sentence that may be left out, or something that must stay as it is. */
export type Segment = { text: string; kind: "sentence" | "fixed" };

const fence = /^\s*(```|~~~)/;
/** Lines that mean something by their shape: indented code, tables, JSON and the like. */
const shapedLine = /^(?: {4}|\t)\S|^\s*\|.*\||^\s*[{}[\]]|^\s*"[^"]*"\s*:|[{};]\s*$|^\s*<\/?[a-z][^>]*>\s*$/i;
/** Contents because of which a sentence must stay: digits, addresses, code, quotations. */
const preciousText = /\d|https?:\/\/|www\.|\S@\S|`|["“”„«»‘]|(?:^|[\s(])'[^']/;
/** A capital inside a sentence: a name, or the beginning of one. */
const innerCapital = /[^\s.!?:"'(*_-]["'(*_]*\s+["'(*_]*\p{Lu}/u;
/** Capitals in a row at the beginning: a name of several words, or an abbreviation. */
const leadingName = /^\W*(?:\p{Lu}[\p{L}'’-]*\s+\p{Lu}|\p{Lu}{2,})/u;
const sentenceEnd = /(?<=[.!?]["')\]]*)[ \t]+(?=["'(\p{Lu}\p{N}])/u;
/** A line without an end is cut into pieces of this length, in characters, so that no text is one endless sentence. */
const MAX_SENTENCE = 2_000;

/**
 * Splits a text into its lines' sentences and its fixed parts, so that all of them joined are the text again; null when there
 * are more of them than `most`.
 */
export function* toSegments(text: string, most: number): Generator<void, Segment[] | null> {
  const segments: Segment[] = [];
  const isDue = makeTextMeter();
  let fencedBy: string | undefined;
  for (let from = 0, end = 0; from < text.length; from = end) {
    if (segments.length > most) return null;
    end = text.indexOf("\n", from) + 1 || text.length;
    const line = text.slice(from, end);
    if (isDue(line.length)) yield;
    const mark = fence.exec(line)?.[1];
    const isFenced = fencedBy !== undefined || mark !== undefined;
    if (mark !== undefined && (fencedBy === undefined || fencedBy === mark)) {
      fencedBy = fencedBy === undefined ? mark : undefined;
    }
    if (isFenced || shapedLine.test(line) || line.length > MAX_SENTENCE * 50)
      segments.push({ text: line, kind: "fixed" });
    else segments.push(...toSentences(line));
  }
  return segments.length > most ? null : segments;
}

function toSentences(line: string): Segment[] {
  return line.split(sentenceEnd).map((text, index, all) => {
    const spaced = index < all.length - 1 ? `${text} ` : text;
    return { text: spaced, kind: spaced.length > MAX_SENTENCE ? "fixed" : "sentence" };
  });
}

/** Whether a sentence must stay, because it has numbers, names, addresses, quotations or code. */
export function isPrecious(sentence: string, names: ReadonlySet<string>): boolean {
  if (/:\s*$/.test(sentence)) return true; // it introduces what follows
  if (preciousText.test(sentence) || innerCapital.test(sentence) || leadingName.test(sentence)) return true;
  const first = /\p{L}[\p{L}'’-]*/u.exec(sentence)?.[0];
  return first !== undefined && names.has(first);
}

/** Words that are written with a capital inside sentences, and so are names at their beginning too. */
export function findNames(text: string): Set<string> {
  return new Set([...text.matchAll(/[\p{Ll},;]\s+(\p{Lu}[\p{L}'’-]*)/gu)].map(([, name = ""]) => name));
}
