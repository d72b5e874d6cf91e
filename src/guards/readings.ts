import { type Excerpt, excerptAround, type Replacement, wholeText } from "./excerpt.ts";
import { findSpans, type Span } from "./spans.ts";

/** Base64 in either alphabet (RFC 4648, 4 and 5), also in the long lines of a mail. Shorter runs hold no identifier. */
const runs = /(?<![\w+/-])[\w+/-]{12,}(?:(?<=[\w+/-]{60})\r?\n[\w+/-]+)*={0,2}/g;
/** What may be base64 within a run that is none as a whole, such as a path or a name with dashes. */
const parts = /[a-z\d]{12,}/gi;
/** What all but words in small letters have in their first characters. */
const sign = /[A-Z\d]/;
/** The beginning of a run, in characters, which shows that pictures, keys and hashes are no text. */
export const HEAD = 48;
/** Characters of base64 that are decoded of one text at most. */
const MAX_ENCODED = 256 << 10;
/** Of the characters of a text, the most that cannot be printed. */
const MAX_UNPRINTABLE = 0.05;
const unprintable = /[^\P{C}\t\r\n]|\ufffd/gu;

/** The runs of base64 in a text that hold text themselves, in order, each with what it stands for. They are decoded once. */
function findEncoded(text: string): Replacement[] {
  const found: Replacement[] = [];
  let left = MAX_ENCODED;
  const add = (start: number, run: string): boolean => {
    const taken = run.slice(0, left);
    const head = taken.slice(0, HEAD);
    const said = sign.test(head) && isText(decode(head)) ? decode(taken) : "";
    if (said === "" || !isText(said)) return false;
    left -= taken.length;
    found.push({ start, end: start + taken.length, said });
    return true;
  };
  for (const { index, 0: run } of text.matchAll(runs)) {
    if (add(index, run)) continue;
    for (const part of run.slice(0, left).matchAll(parts)) add(index + part.index, part[0]);
  }
  return found;
}

const decode = (run: string) => Buffer.from(run, "base64").toString("utf8");

/** Whether base64 says a text, by its beginning. */
export const isEncodedText = (run: string): boolean => isText(decode(run));

/** Whether nearly all of it can be printed. A cut may have parted its last character. */
function isText(decoded: string): boolean {
  const odd = decoded.replace(/\ufffd$/, "").match(unprintable)?.length ?? 0;
  return odd <= decoded.length * MAX_UNPRINTABLE;
}

/** One way to read a text. A lenient one keeps `DoB` one word, which camel case parts, and takes a letter O among digits for 0. */
export type Reading = Excerpt & { isLenient: boolean };

/** Words with a capital within them, and groups of digits with the letter O (of three scripts) beside them. */
const camelCase = /(?<![a-zA-Z])[a-zA-Z]*[a-z][A-Z][a-zA-Z]*/g;
const looseO =
  /(?<![a-zA-Z\u043e\u041e\u03bf\u039f])[oO\u043e\u041e\u03bf\u039f]+[ .-]?\d|\d[ .-]?[oO\u043e\u041e\u03bf\u039f]+(?![a-zA-Z])/g;
const capitalWithin = /(?<=[a-z])(?=[A-Z])/;
/** Letters of a part of a name in camel case, as in `maxTokens`; a word with shorter ones may have been written oddly. */
const MIN_PART = 3;

/** A text as it stands, and its parts that can be read in another way in that way too, which only adds findings. */
export function readingsOf(text: string): Reading[] {
  const readings: Reading[] = [{ ...wholeText(text), isLenient: false }];
  const places = doubtfulPlaces(text);
  if (places.length > 0) readings.push({ ...excerptAround(text, places), isLenient: true });
  for (const replacements of [findEscapes(text), findEncoded(text)]) {
    if (replacements.length === 0) continue;
    const decoded = excerptAround(text, replacements);
    readings.push({ ...decoded, isLenient: false });
    if (doubtfulPlaces(decoded.text).length > 0) readings.push({ ...decoded, isLenient: true });
  }
  return readings;
}

/** Where a lenient reading differs, in order. */
function doubtfulPlaces(text: string): Span[] {
  const isOdd = ({ start, end }: Span) => {
    const parts = text.slice(start, end).split(capitalWithin);
    return parts.some(({ length }) => length < MIN_PART);
  };
  const words = capitalWithin.test(text) ? findSpans(text, camelCase).filter(isOdd) : [];
  const all = [...words, ...findSpans(text, looseO)].sort((a, b) => a.start - b.start);
  return all.filter((place, index) => place.start >= (all[index - 1]?.end ?? 0));
}

/** HTML's names of blanks, dashes, invisible characters and of the punctuation that identifiers are written with. */
const named = new Map(
  [
    [" ", "nbsp ensp emsp emsp13 emsp14 numsp puncsp thinsp hairsp Tab NewLine"],
    ["-", "ndash mdash hyphen dash minus horbar"],
    ["\u200b", "shy zwj zwnj lrm rlm ZeroWidthSpace NoBreak"],
    ...Object.entries({ "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos", ":": "colon", ".": "period" }),
    ...Object.entries({ ",": "comma", "/": "sol", "\\": "bsol", _: "lowbar", "#": "num", "(": "lpar", ")": "rpar" }),
    ...Object.entries({ "|": "vert", "*": "ast", "+": "plus", "=": "equals", "\u2022": "bull", "\u00b7": "middot" }),
  ].flatMap(([character = "", names = ""]) => names.split(" ").map((name) => [name, character] as const)),
);
/** Entities of HTML; percent and %u escapes of URLs; the escapes of JSON and its like; escaped punctuation (JSON, Markdown). */
const escapes =
  /&#(\d{1,7});?|&#x([\da-f]{1,6});?|&([a-z][a-z\d]{1,14});|%u([\da-f]{4})|((?:%[c-f][\da-f](?:%[89ab][\da-f]){1,3})|%[0-7][\da-f])|\\u([\da-f]{4})|\\u\{([\da-f]{1,6})\}|\\x([\da-f]{2})|\\([nrt])|\\([!-/:-@[-`{-~])/gi;
/** What every escape has one of. */
const escapeSign = /[&%\\]/;

/** The escaped characters of a text, in order, each with what it stands for; an escape within another's result stays one. */
function findEscapes(text: string): Replacement[] {
  if (!escapeSign.test(text)) return [];
  const found: Replacement[] = [];
  for (const match of text.matchAll(escapes)) {
    const said = meaningOf(match);
    if (said !== undefined) found.push({ start: match.index, end: match.index + match[0].length, said });
  }
  return found;
}

function meaningOf(match: RegExpExecArray): string | undefined {
  const [, decimal, hex, name, ...rest] = match;
  const [percentUnit, bytes, unit, braced, byte, control, punctuation] = rest;
  if (decimal !== undefined) return characterOf(Number(decimal));
  if (name !== undefined) return named.get(name);
  if (bytes !== undefined) return ofBytes(bytes);
  if (control !== undefined) return /[nr]/i.test(control) ? "\n" : " ";
  if (punctuation !== undefined) return punctuation;
  return characterOf(Number.parseInt(hex ?? percentUnit ?? unit ?? braced ?? byte ?? "", 16));
}

const characterOf = (code: number) => (code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined);

/** The character of escaped bytes of UTF-8; undefined when they are none. */
function ofBytes(escaped: string): string | undefined {
  if (escaped.length === 3) return String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  const said = Buffer.from(escaped.replaceAll("%", ""), "hex").toString("utf8");
  return said.includes("\ufffd") ? undefined : said;
}
