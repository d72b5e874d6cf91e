import { functionWords } from "../common-words.ts";

/** Keys of one text: a chunk is short, and more say nothing about it. */
const MAX_KEYS = 200;
/** Parts of an identifier that make one key. */
const MAX_PARTS = 4;
const MAX_PART = 12; // characters
/** Longest letters of an identifier that a blank may part from its number, in a query. */
const MAX_LETTERS = 8;

/** A run of letters, or a number with what stands between its digits. */
const part = /\p{L}+|\d+(?:[.,]\d+){0,4}/gu;
/** What may stand between two parts: a blank, one sign, a degree, or nothing. */
const between = /^(?:[ \u00a0\u202f]?\u00b0?|[-\u2013/._:])$/u;
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

type Part = { text: string; isNumber: boolean /** What stands before it, after the part before. */; gap: string };

/**
 * Returns the identifiers and quantities of a text, each as one word without what may stand between its parts: `dn50` of
 * `DN 50`, `e04` of `E-04`, `iso13849` and `iso138491` of `ISO 13849-1`. A decimal point is written `d`, so that 2.5 is not 25.
 *
 * In a text, parts with a blank between them belong together only if the letters look like an identifier or a unit. In a query
 * all short words do: what stands in no text finds nothing.
 */
export function identifierKeys(text: string, { isQuery = false } = {}): string[] {
  const parts = partsOf(text.replaceAll("\u00d7", "x"));
  const keys = new Set<string>();
  for (let from = 0; from < parts.length && keys.size < MAX_KEYS; from += 1) {
    for (let count = 2; count <= MAX_PARTS; count += 1) {
      const run = parts.slice(from, from + count);
      const last = run.at(-1);
      const before = run.at(-2);
      if (run.length < count || !last || !before || !areJoined(before, last, isQuery)) break;
      if (!isIdentifier(run)) continue;
      // A word without anything between its parts is found as it is.
      if (run.slice(1).every(({ gap }) => gap === "") && !run.some(({ text }) => /[.,]/.test(text))) continue;
      for (const key of spellings(run)) keys.add(key);
    }
  }
  return [...keys];
}

function partsOf(text: string): Part[] {
  let end = 0;
  return Array.from(text.matchAll(part), ({ 0: found, index }) => {
    const gap = text.slice(end, index);
    end = index + found.length;
    return { text: found, isNumber: /^\d/.test(found), gap };
  });
}

/** Whether a part belongs to the identifier that the part before it is of. */
function areJoined(before: Part, { text, isNumber, gap }: Part, isQuery: boolean): boolean {
  if (!between.test(gap) || before.text.length > MAX_PART || text.length > MAX_PART) return false;
  if (!before.isNumber && !isNumber)
    return /^[-\u2013/._:]$/.test(gap) && (isQuery || (isCode(before.text) && isCode(text)));
  if (!blank.test(gap)) return true;
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
