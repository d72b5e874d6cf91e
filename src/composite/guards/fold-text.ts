import { type NumberWordRun, numberWordRuns } from "./number-words.ts";

/**
 * A text in the one form that the recognisers read: lower case, ASCII digits and dashes, no accents, no invisible characters,
 * number words as digits. `origin[i]` is where unit `i` begins in the text as it was given, in UTF-16 units.
 */
export type FoldedText = { text: string; origin: Uint32Array; original: string };

/** Invisible, or decoration of the character before: joiners, directions, variation selectors, accents, key caps, tags. */
const dropped = /\p{Default_Ignorable_Code_Point}|[\u0300-\u036f]|[\u20d0-\u20ff]/u;
const dash = /[\p{Pd}\u2212\u02d7\u2043\u23af\u2500\u25ac]/u;
const blank = /[\t\v\f\p{Zs}]/u;
const lineEnd = /[\u0085\u2028\u2029]/;
const decimalDigit = /\p{Nd}/u;
/** ASCII without words that only a capital parts: there is nothing to fold but the case. */
const isPlain = /^(?!.*[a-z][A-Z])[\n\r -~]*$/s;
/** Letters whose stroke or missing dot Unicode does not part from them. */
const stroked = new Map([
  ["\u00f8", "o"],
  ["\u0111", "d"],
  ["\u0142", "l"],
  ["\u0131", "i"],
  ["\u00e6", "ae"],
  ["\u00df", "ss"],
]);
/** What one character may become; longer ligatures hold no identifier and would make the text grow. */
const MAX_EXPANSION = 4;

/** Folds a text; its length grows by one unit at most for each of the original's, and its time is linear. */
export function foldText(original: string): FoldedText {
  const folded = foldCharacters(original);
  const runs = numberWordRuns(folded.text);
  return runs.length === 0 ? folded : replaceRuns(folded, runs);
}

function foldCharacters(original: string): FoldedText {
  const { length } = original;
  if (isPlain.test(original)) return { text: original.toLowerCase(), origin: identity(length), original };
  const units = new Uint16Array(length * (MAX_EXPANSION + 1));
  const origin = new Uint32Array(units.length + 1);
  const known = new Map<number, string>();
  let size = 0;
  let wasLower = false;
  const push = (unit: number, at: number) => {
    units[size] = unit;
    origin[size] = at;
    size += 1;
  };
  for (let at = 0; at < length; ) {
    const code = original.codePointAt(at) ?? 0;
    const isUpper = code >= 65 && code <= 90;
    // `patientId` and `userSSN` are two words each
    if (isUpper && wasLower) push(32, at);
    if (code < 128) push(isUpper ? code + 32 : code === 9 || code === 11 || code === 12 ? 32 : code, at);
    else {
      let form = known.get(code);
      if (form === undefined) {
        form = foldCharacter(String.fromCodePoint(code));
        known.set(code, form);
      }
      for (let index = 0; index < form.length; index += 1) push(form.charCodeAt(index), at);
    }
    wasLower = code >= 97 && code <= 122;
    at += code > 0xffff ? 2 : 1;
  }
  origin[size] = length;
  return { text: decode(units.subarray(0, size)), origin: origin.subarray(0, size + 1), original };
}

function identity(length: number): Uint32Array {
  const origin = new Uint32Array(length + 1);
  for (let at = 0; at <= length; at += 1) origin[at] = at;
  return origin;
}

function decode(units: Uint16Array): string {
  return Buffer.from(units.buffer, units.byteOffset, units.byteLength).toString("utf16le");
}

function foldCharacter(character: string): string {
  if (dropped.test(character)) return "";
  if (dash.test(character)) return "-";
  if (blank.test(character)) return " ";
  if (lineEnd.test(character)) return "\n";
  if (decimalDigit.test(character)) return String(digitValue(character));
  const compatible = character.normalize("NFKC").toLowerCase();
  const code = character.codePointAt(0) ?? 0;
  // Accents of Latin, Greek and Cyrillic letters go; marks of other scripts are letters of their own.
  const plain = code < 0x2000 ? compatible.normalize("NFD").replace(/[\u0300-\u036f]/g, "") : compatible;
  const letter = stroked.get(plain);
  if (letter !== undefined) return letter;
  return plain.length > MAX_EXPANSION ? character : plain;
}

/** The value of a decimal digit of any script: each has its ten in order, from zero. */
function digitValue(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  let before = 0;
  while (decimalDigit.test(String.fromCodePoint(code - before - 1))) before += 1;
  return before % 10;
}

function replaceRuns({ text, origin, original }: FoldedText, runs: readonly NumberWordRun[]): FoldedText {
  const parts: string[] = [];
  const places = new Uint32Array(origin.length);
  let size = 0;
  let last = 0;
  const keep = (until: number) => {
    parts.push(text.slice(last, until));
    places.set(origin.subarray(last, until), size);
    size += until - last;
  };
  for (const { start, end, digits } of runs) {
    keep(start);
    parts.push(digits);
    for (let index = 0; index < digits.length; index += 1) {
      // digits of a run lie evenly over its words, so that a span of them covers the words that it came from
      places[size] = origin[start + Math.floor((index * (end - start)) / digits.length)] ?? 0;
      size += 1;
    }
    last = end;
  }
  keep(text.length);
  places[size] = original.length;
  return { text: parts.join(""), origin: places.subarray(0, size + 1), original };
}
