import type { Replacement } from "./excerpt.ts";

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
const sign = /[&%\\]/;

/** The escaped characters of a text, in order, each with what it stands for; an escape within another's result stays one. */
export function findEscapes(text: string): Replacement[] {
  if (!sign.test(text)) return [];
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
