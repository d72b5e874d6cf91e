/** How two groups of digits may be parted: as one number's usually are, or only where a label or a checksum speaks for one. */
export type Parting = "close" | "loose";

/** One character of these, or a few of the pattern, part the groups of one number. */
const single = " -./_\n\u00b7\u2022";
const close = /^(?: {1,2}| ?[-.\u00b7\u2022/_] ?| ?[-.]? ?\r?\n ?)$/;
const MAX_CLOSE = 4;
/** The longest gap that is looked at, with markup, and what may be left of it without. */
const MAX_GAP = 64;
const MAX_LOOSE = 4;
const tag = /<\/?[a-z][^<>]{0,40}>/g;
/** Tags that mark a part of a line, rather than a cell or a line. */
const inlineTag =
  /<\/?(?:a|b|i|u|s|em|strong|span|font|code|mark|small|big|tt|kbd|var|sub|sup|wbr|bdi|nobr)(?![a-z])[^<>]{0,40}>/g;
const letterOrNumber = /[\p{L}\p{N}]/u;
const emphasis = /\*{1,3}|_{1,3}|~~|`+/g;
const spoken = /^[ -]?(?:dash|hyphen|minus|tiret|dot|point|period|slash|space|blank)[ -]?$/;
const dashSpoken = /dash|hyphen|minus|tiret/;

/** How the text from `start` to `end` parts the digits on either side; undefined when they are two numbers. */
export function partingOf(text: string, start: number, end: number): Parting | undefined {
  const length = end - start;
  if (length === 1 && single.includes(text.charAt(start))) return "close";
  if (length > MAX_GAP) return undefined;
  const gap = text.slice(start, end);
  if (length <= MAX_CLOSE && close.test(gap)) return "close";
  const rest = (gap.includes("<") ? gap.replace(tag, "") : gap).replace(emphasis, "");
  return (rest.length <= MAX_LOOSE && !letterOrNumber.test(rest)) || spoken.test(rest) ? "loose" : undefined;
}

/** What a separator is without the markup around it: `**-**` and ` dash ` are a dash, three blanks are one. */
export function plainSeparator(gap: string): string {
  if (gap.length === 1 || close.test(gap)) return gap;
  const untagged = gap.replace(inlineTag, "").replace(tag, "|");
  const plain = untagged.replace(emphasis, "") || untagged;
  if (spoken.test(plain)) return dashSpoken.test(plain) ? "-" : " ";
  return plain.replace(/ {2,}/g, " ").replace(/-{2,}/g, "-");
}
