/** What a font has printed, up to some thousands of letters, and whether it tells which letters its codes stand for. */
type FontSample = { text: string; hasMap: boolean };

const MAX_SAMPLE = 4_000; // characters
/** Fewer letters, or fewer different ones, say nothing: bullets and signs have such fonts. */
const LEAST = { withMap: 80, withoutMap: 12 };
const LEAST_DIFFERENT = 6;
/** Share of codes that are no letter of any script. Fonts of signs, as those of equations, have a map and many such codes. */
const MAX_NO_LETTERS = 0.02;
/** Share of vowels among the letters of a text in Latin script: languages have a quarter to half of them. */
const MIN_VOWELS = { withMap: 0.12, withoutMap: 0.22 };
/** Letters that stand together on average where they make words. Those of equations stand alone. */
const LETTERS_OF_WORDS = 2.5;
/** From this share on, the letters of a text are Latin ones. */
const LATIN = 0.6;

// biome-ignore lint/suspicious/noControlCharactersInRegex: such codes are what is looked for
const unknownSign = /[\u0000-\u0008\u000e-\u001f\ufffd]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: likewise
const noLetter = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufffd\p{Co}\p{Cn}]/gu;

/** Collects what each font prints. */
export function collectFonts() {
  const samples = new Map<string, FontSample>();
  return {
    add(font: string, text: string, hasMap: boolean): void {
      const sample = samples.get(font) ?? { text: "", hasMap };
      if (sample.text.length < MAX_SAMPLE) samples.set(font, { text: `${sample.text} ${text}`, hasMap });
    },
    /** The fonts whose codes stand for letters that nobody knows: what they print is no language. */
    unreadable(): ReadonlySet<string> {
      return new Set([...samples].filter(([, sample]) => isUnreadable(sample)).map(([font]) => font));
    },
  };
}

function isUnreadable({ text, hasMap }: FontSample): boolean {
  const kind = hasMap ? "withMap" : "withoutMap";
  const printed = text.replace(/[\s\u00a0]/g, "");
  if (printed.length < LEAST[kind] || new Set(printed).size < LEAST_DIFFERENT) return false;
  if (!hasMap && count(printed, noLetter) > MAX_NO_LETTERS * printed.length) return true;
  const letters = printed.normalize("NFD").replace(/[^A-Za-z]/g, "");
  if (letters.length < LATIN * count(printed, /\p{L}/gu) || letters.length < LATIN * printed.length) return false;
  if (letters.length < LETTERS_OF_WORDS * count(text, /[A-Za-z]+/g)) return false;
  return count(letters, /[aeiouy]/gi) < MIN_VOWELS[kind] * letters.length;
}

/** How many signs of a text are none that a reader could see. */
export const countUnknown = (text: string): number => count(text, unknownSign);

const count = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
