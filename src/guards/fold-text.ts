import { hanNumberRuns, type NumberWordRun, numberWordRuns, spokenDigitRuns } from "./number-words.ts";

/**
 * A text in the one form that the recognisers read: lower case, ASCII digits and dashes, no accents, no invisible characters,
 * number words as digits. `origin[i]` is where unit `i` begins in the original, in UTF-16 units.
 */
type FoldedText = { text: string; origin: Uint32Array; original: string };

/**
 * Invisible, or decoration of the character before: joiners, directions, variation selectors, accents, key caps, tags, controls,
 * and what has no meaning that all readers share (private use, unassigned, half a surrogate pair).
 */
const dropped = /\p{Default_Ignorable_Code_Point}|\p{C}|[\u0300-\u036f]|[\u20d0-\u20ff]/u;
const dash = /[\p{Pd}\u2212\u02d7\u2043\u23af\u2500\u25ac]/u;
const blank = /[\t\v\f\p{Zs}]/u;
const lineEnd = /[\u0085\u2028\u2029]/;
const decimalDigit = /\p{Nd}/u;
/** ASCII without controls: there is nothing to fold but the case, and words that only a capital parts. */
const isPlain = /^[\n\r -~]*$/;
const capitalWithin = /[a-z][A-Z]/;
/** Groups of digits with the letter O, of three scripts, among them. */
const withLetterO = /(?<![a-z\d\u043e\u03bf])[\do\u043e\u03bf]+(?:[-./ ][\do\u043e\u03bf]+)*(?![a-z\d])/g;
/** In a shorter number the letter is more often a word or a unit, and so it is among fewer digits. */
const MIN_LENGTH_WITH_O = 6;
const MIN_DIGITS_WITH_O = 2;
/** Digits in circles that Unicode has no compatible form of: rows of one to ten, and zeros. */
const circled = new Map<number, string>();
for (const first of [0x24f5, 0x2776, 0x2780, 0x278a]) {
  for (let value = 1; value <= 10; value += 1) circled.set(first + value - 1, String(value));
}
for (const zero of [0x24ff, 0x1f10b, 0x1f10c]) circled.set(zero, "0");
/** Letters whose stroke or missing dot Unicode does not part from them. */
const stroked = new Map(Object.entries({ ø: "o", đ: "d", ł: "l", ı: "i", æ: "ae", ß: "ss" }));
/** What one character may become; longer ligatures hold no identifier and would make the text grow. */
const MAX_EXPANSION = 4;

/**
 * Folds a text; its length grows by one unit at most for each of the original's, and its time is linear. A lenient one keeps
 * words together that only a capital parts, and reads a letter O among digits as 0.
 */
export function foldText(original: string, isLenient = false): FoldedText {
  const folded = foldCharacters(original, isLenient);
  if (isLenient) folded.text = folded.text.replace(withLetterO, readLetterO);
  const { text } = folded;
  const runs = longestOf([...numberWordRuns(text), ...spokenDigitRuns(text), ...hanNumberRuns(text)]);
  return runs.length === 0 ? folded : replaceRuns(folded, runs);
}

/** A word in its folded form, as the lists of words have it. */
export const foldWord = (word: string): string => foldCharacters(word, true).text;

/** In order, and of those that overlap the longest: languages share words. */
function longestOf(runs: readonly NumberWordRun[]): NumberWordRun[] {
  const kept: NumberWordRun[] = [];
  for (const run of runs.toSorted((a, b) => a.start - b.start)) {
    const last = kept.at(-1);
    if (last === undefined || run.start >= last.end) kept.push(run);
    else if (run.end - run.start > last.end - last.start) kept[kept.length - 1] = run;
  }
  return kept;
}

function readLetterO(number: string): string {
  const digits = number.replace(/[^\do\u043e\u03bf]/g, "");
  const isNumber = digits.length >= MIN_LENGTH_WITH_O && digits.replace(/\D/g, "").length >= MIN_DIGITS_WITH_O;
  return isNumber ? number.replace(/[o\u043e\u03bf]/g, "0") : number;
}

function foldCharacters(original: string, isLenient: boolean): FoldedText {
  const { length } = original;
  if (isPlain.test(original) && (isLenient || !capitalWithin.test(original))) return foldCase(original);
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
    if (isUpper && wasLower && !isLenient) push(32, at);
    if (code < 128) {
      const unit = isUpper ? code + 32 : foldControl(code);
      if (unit !== undefined) push(unit, at);
    } else {
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
  const text = Buffer.from(units.buffer, 0, size * 2).toString("utf16le");
  return { text, origin: origin.subarray(0, size + 1), original };
}

function foldCase(original: string): FoldedText {
  const origin = new Uint32Array(original.length + 1);
  for (let at = 0; at <= original.length; at += 1) origin[at] = at;
  return { text: original.toLowerCase(), origin, original };
}

/** Tabs and the like, and the separators of records (28 to 31), are blanks; other controls but line ends are nothing. */
function foldControl(code: number): number | undefined {
  if ((code >= 32 && code < 127) || code === 10 || code === 13) return code;
  return code === 9 || code === 11 || code === 12 || (code >= 28 && code <= 31) ? 32 : undefined;
}

function foldCharacter(character: string): string {
  if (lineEnd.test(character)) return "\n";
  if (dropped.test(character)) return "";
  if (dash.test(character)) return "-";
  if (blank.test(character)) return " ";
  if (decimalDigit.test(character)) return String(digitValue(character));
  const code = character.codePointAt(0) ?? 0;
  const digit = circled.get(code);
  if (digit !== undefined) return digit;
  const compatible = character.normalize("NFKC").toLowerCase();
  // Accents of Latin, Greek and Cyrillic letters go; marks of other scripts are letters of their own.
  const plain = code < 0x2000 ? compatible.normalize("NFD").replace(/[\u0300-\u036f]/g, "") : compatible;
  return stroked.get(plain) ?? (plain.length > MAX_EXPANSION ? character : plain);
}

/** The value of a decimal digit of any script: each has its ten in order, from zero. */
function digitValue(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  let before = 0;
  while (decimalDigit.test(String.fromCodePoint(code - before - 1))) before += 1;
  return before % 10;
}

/** A run's last word in Latin letters. */
const lastWordPattern = /[a-z]+$/;

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
    const lastWord = start + text.slice(start, end).search(lastWordPattern);
    for (let index = 0; index < digits.length; index += 1) {
      // digits of a run lie evenly over its words, so that a span of them covers the words that it came from
      const even = start + Math.floor((index * (end - start)) / digits.length);
      places[size] = origin[index === digits.length - 1 ? Math.max(even, lastWord) : even] ?? 0;
      size += 1;
    }
    last = end;
  }
  keep(text.length);
  places[size] = original.length;
  return { text: parts.join(""), origin: places.subarray(0, size + 1), original };
}
