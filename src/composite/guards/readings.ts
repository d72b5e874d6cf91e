import { findEncoded } from "./encoded.ts";
import { findEscapes } from "./escapes.ts";
import { type Excerpt, excerptAround, wholeText } from "./excerpt.ts";
import { findSpans, type Span } from "./spans.ts";

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
