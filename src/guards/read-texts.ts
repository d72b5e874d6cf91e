import { type Finding, findValues, type GuardKind, inOrder } from "./guard.ts";

/** Characters that are read at a time: some milliseconds. */
const PIECE = 8_000;
/** A text of a few characters takes as long as so many more. */
const OVERHEAD = 64;
/** What is read again before a piece, for its labels; what is read behind it, for values and labels that reach out of it. */
const BEFORE = 480;
const BEHIND = 1_024;
/** Characters of the longest value: a private key, or a token without blanks. */
const LONGEST = 13_000;
const privateKey = /private key/i;
const ofBase64 = /[\w+/-]/;

/** A text, the kinds that are looked for in it, and what names it, as `ssn` does in `{"ssn": "219099999"}`. */
type ReadText = { text: string; kinds: readonly GuardKind[]; label?: string | undefined };

/** The values of each text. It is done in steps of some milliseconds, and yields between them. Throws what `findValues` throws. */
export function* readTexts(texts: readonly ReadText[]): Generator<void, Finding[][]> {
  const found: Finding[][] = [];
  let size = 0;
  for (const { text, kinds, label = "" } of texts) {
    if (size >= PIECE) {
      yield;
      size = 0;
    }
    const before = label === "" ? "" : `${label}: `;
    const values = kinds.length === 0 || text === "" ? [] : yield* findInPieces(before + text, kinds);
    found.push(before === "" ? values : values.flatMap((one) => withoutLabel(one, before.length)));
    size += Math.min(text.length, PIECE) + OVERHEAD;
  }
  return found;
}

/** The same without a pause, for texts that are short. */
export function readAtOnce(texts: readonly ReadText[]): Finding[][] {
  const reading = readTexts(texts);
  for (;;) {
    const step = reading.next();
    if (step.done) return step.value;
  }
}

function withoutLabel({ kind, start, end }: Finding, length: number): Finding[] {
  return end > length ? [{ kind, start: Math.max(0, start - length), end: end - length }] : [];
}

/** All values of a text, piece by piece; each piece is read with what stands around it. */
function* findInPieces(text: string, kinds: readonly GuardKind[]): Generator<void, Finding[]> {
  if (text.length <= PIECE + BEHIND) return findValues(text, kinds);
  const found: Finding[] = [];
  let start = 0;
  for (let from = 0; from < text.length; from += PIECE) {
    if (from > 0) yield;
    const to = from + PIECE;
    start = startOf(text, { from, last: start });
    for (const value of findValues(text.slice(start, readUntil(text, start, to)), kinds)) {
      const moved = { ...value, start: value.start + start, end: value.end + start };
      if (moved.end > from && moved.start < to) found.push(moved);
    }
  }
  return inOrder(found);
}

/** Where reading a piece begins. Within base64 that is after a multiple of four characters, as the start `last` was. */
function startOf(text: string, { from, last }: { from: number; last: number }): number {
  const wanted = Math.max(0, from - BEFORE);
  let run = wanted;
  while (run > last && ofBase64.test(text.charAt(run - 1))) run -= 1;
  return run + ((wanted - run) & ~3);
}

/** How far a text must be read from `start` on for all values to be known that begin before `to`. */
export function readUntil(text: string, start: number, to: number): number {
  const least = to + BEHIND;
  if (privateKey.test(text.slice(start, least))) return to + LONGEST;
  const blank = text.slice(least, to + LONGEST).search(/\s/);
  return blank < 0 ? to + LONGEST : least + blank;
}
