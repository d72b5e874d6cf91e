import { functionWords } from "../lib/common-words.ts";

/** Maximum keys of a text: a chunk is short, and more keys would not describe it. */
const MAX_KEYS = 200;
/** Maximum parts of an identifier in one key. */
const MAX_PARTS = 4;
const MAX_PART = 12; // characters
/** Maximum letters of an identifier that a blank may separate from its number, in a query. */
const MAX_LETTERS = 8;

const letters = /\p{L}+/uy;
const number = /\d+(?:[.,]\d+){0,4}/y;
/** Separators between two parts: a blank, one sign, a degree, or nothing. */
const between = /^(?:[ \u00a0\u202f]?\u00b0?|[-\u2013/._:])$/u;
const MAX_GAP = 2;
const sign = /^[-\u2013/._:]$/;
const blank = /[ \u00a0\u202f]/;
/** Units that are written in small letters; those with a capital, as kW, are recognised by it. */
const units = new Set(
  "bar mbar mm cm dm m km nm g kg mg t l ml s ms min h d v kv mv w a ma hz n nm k f c pa rpm ohm db px pt in ft lb oz psi bit kb mb gb tb".split(
    " ",
  ),
);
/** Words before a number that name a place in the text itself. */
const places =
  /^(?:figures?|fig|tables?|tab|sections?|sec|chapters?|chap|pages?|steps?|equations?|eqs?|notes?|parts?|no|nr|vol)$/i;

/** A run of letters, or a number with the points and commas between its digits. */
type Part = { text: string; isNumber: boolean /** Text between this part and the one before. */; gap: string };

/**
 * Returns the identifiers and quantities of a text, each as one word without what may stand between its parts: `dn50` of
 * `DN 50`, `e04` of `E-04`, `iso13849` and `iso138491` of `ISO 13849-1`. A decimal point is written `d`, so that 2.5 is not 25.
 *
 * In a text, parts with a blank between them belong together only if the letters look like an identifier or a unit. In a query
 * all short words do: what stands in no text finds nothing.
 */
export function identifierKeys(text: string, { isQuery = false } = {}): string[] {
  const keys = new Set<string>();
  for (const chain of chainsOf(text.replaceAll("\u00d7", "x"), isQuery)) {
    if (isOneWord(chain)) continue;
    for (let from = 0; from < chain.length - 1 && keys.size < MAX_KEYS; from += 1) {
      for (let to = from + 2; to <= Math.min(chain.length, from + MAX_PARTS); to += 1) {
        const run = chain.slice(from, to);
        if (isIdentifier(run) && !isOneWord(run)) for (const key of spellings(run)) keys.add(key);
      }
    }
    if (keys.size >= MAX_KEYS) break;
  }
  return [...keys];
}

/** The parts that belong together, two or more at a time. Most of a text are words with a blank between them: they end here. */
function chainsOf(text: string, isQuery: boolean): Part[][] {
  const chains: Part[][] = [];
  let chain: Part[] = [];
  let before: Span | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const isNumber = isDigit(text.charCodeAt(at));
    const end = isNumber ? endOfNumber(text, at) : endOfLetters(text, at);
    if (end === at) continue;
    const span = { start: at, end, isNumber };
    if (before && areNear(before, span, text)) {
      if (chain.length === 0) chain.push(toPart(text, before, before.start));
      const part = toPart(text, span, before.end);
      const last = chain.at(-1);
      if (last && areJoined(last, part, isQuery)) chain.push(part);
      else {
        if (chain.length > 1) chains.push(chain);
        chain = [part];
      }
    } else {
      if (chain.length > 1) chains.push(chain);
      if (chain.length > 0) chain = [];
    }
    before = span;
    at = end - 1;
  }
  if (chain.length > 1) chains.push(chain);
  return chains;
}

type Span = { start: number; end: number; isNumber: boolean };

const toPart = (text: string, { start, end, isNumber }: Span, gapStart: number): Part => ({
  text: text.slice(start, end),
  isNumber,
  gap: text.slice(gapStart, start),
});

/** Whether two spans may belong together, judged by their positions. */
const areNear = (before: Span, span: Span, text: string) =>
  span.start - before.end <= MAX_GAP &&
  before.end - before.start <= MAX_PART &&
  span.end - span.start <= MAX_PART &&
  (before.isNumber || span.isNumber || (span.start - before.end === 1 && text[before.end] !== " "));

const isDigit = (code: number) => code >= 48 && code <= 57;
const isAsciiLetter = (code: number) => (code >= 97 && code <= 122) || (code >= 65 && code <= 90);

/**
 * End of the letters at a position. It compares numbers because every chunk is read this way, and a regular expression takes
 * ten times as long.
 */
function endOfLetters(text: string, from: number): number {
  let at = from;
  while (isAsciiLetter(text.charCodeAt(at))) at += 1;
  return text.charCodeAt(at) > 127 ? endOf(letters, text, at) : at;
}

function endOfNumber(text: string, from: number): number {
  let at = from;
  while (isDigit(text.charCodeAt(at))) at += 1;
  return text[at] === "." || text[at] === "," ? endOf(number, text, from) : at;
}

function endOf(sticky: RegExp, text: string, from: number): number {
  sticky.lastIndex = from;
  return sticky.test(text) ? sticky.lastIndex : from;
}

/** Whether a part belongs to the identifier that the part before it is of. */
function areJoined(before: Part, { text, isNumber, gap }: Part, isQuery: boolean): boolean {
  if (!before.isNumber && !isNumber) return sign.test(gap) && (isQuery || (isCode(before.text) && isCode(text)));
  if (gap === "") return true;
  if (gap !== " " && !blank.test(gap)) return between.test(gap);
  if (gap !== " " && !between.test(gap)) return false;
  if (isNumber && before.isNumber) return false;
  const letters = isNumber ? before.text : text;
  if (letters === "x") return true; // as in M8 x 20
  if (isQuery) return letters.length <= MAX_LETTERS && !functionWords.has(letters.toLowerCase());
  if (isNumber) return isCode(before.text) || (text.includes(".") && isName(before.text));
  return units.has(text.toLowerCase()) || /^[a-z]?[A-Z][A-Za-z]?$/.test(text);
}

/** Letters as in DN, RS or kW: a capital that is not just the first letter of a word, or one letter. */
const isCode = (letters: string) => /^\p{Lu}{1,6}$/u.test(letters) || /^\p{Ll}{1,2}\p{Lu}/u.test(letters);
const isName = (letters: string) => /^\p{Lu}\p{L}*$/u.test(letters) && !places.test(letters);

/** A word without anything between its parts is found as it is. */
const isOneWord = ([first, ...rest]: readonly Part[]) =>
  first !== undefined && !hasPoint(first) && rest.every((part) => part.gap === "" && !hasPoint(part));
const hasPoint = ({ text, isNumber }: Part) => isNumber && /[.,]/.test(text);

/** Letters and digits together, or digits that are as many as those of a part's number. */
function isIdentifier(run: readonly Part[]): boolean {
  const digits = run.reduce((sum, { text, isNumber }) => sum + (isNumber ? text.length : 0), 0);
  return digits > 0 && (run.some(({ isNumber }) => !isNumber) || digits >= 5);
}

/** A comma parts thousands, or is a decimal point: both are keys. */
function spellings(run: readonly Part[]): string[] {
  const joined = run
    .map(({ text }) => text)
    .join("")
    .toLowerCase();
  const withPoint = joined.replace(/[.,]/g, "d");
  const isThousands = /(?<!\d)\d{1,3}(?:,\d{3})+(?!\d)/.test(joined);
  return isThousands ? [withPoint, joined.replaceAll(",", "").replaceAll(".", "d")] : [withPoint];
}
