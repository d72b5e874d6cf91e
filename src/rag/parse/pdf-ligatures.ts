import { OPS } from "unpdf/pdfjs";
import { z } from "zod";
import type { Drawing } from "./pdf-pictures.ts";
import type { GivenItem } from "./pdf-texts.ts";

type Item = Extract<GivenItem, { str: string }>;
/** A ligature before the letter of this number, and its width as a multiple of the other letters' of its font. */
type Ligature = { before: number; text: string; share: number };

/** Ligatures in the fonts of TeX by their codes. The library takes the first three for blanks, the others for signs. */
const blankLigatures = new Map([
  [11, "ff"],
  [12, "fi"],
  [13, "fl"],
]);
/** A font prints words if its texts have so many letters on average; fonts of equations print single ones. */
const LETTERS_OF_WORDS = 2.2;
/** A blank that is wider than its ligature by this part of a letter is a blank, too. */
const BLANK = 0.2;

const glyphSchema = z.object({ originalCharCode: z.number(), unicode: z.string(), width: z.number() });
const lettersIn = (text: string) => text.replace(/\s/g, "").length;

/**
 * Puts back the ligatures of fonts that the document draws itself, as old papers of TeX do: "speci c" becomes "specific". The
 * drawing commands have them; where their letters are not those of the texts, the texts stay.
 */
export function withLigatures(
  items: readonly GivenItem[],
  drawing: Drawing,
  isDrawnFont: (font: string) => boolean,
): readonly GivenItem[] {
  const fonts = fontsOfWords(items, isDrawnFont);
  if (fonts.size === 0) return items;
  const { found, letters } = findLigatures(drawing, fonts);
  const restored: Item[] = [];
  let at = 0; // the number of the next letter
  let next = 0; // the next ligature
  for (const given of items) {
    if (!("str" in given)) continue;
    const item = { ...given, str: fonts.has(given.fontName) ? withSigns(given.str) : given.str };
    const size = lettersIn(given.str);
    for (; found[next]?.before === at && size > 0; next += 1) {
      const ligature = found[next];
      if (ligature) join(restored, item, ligature, given.width / size);
    }
    at += size;
    while ((found[next]?.before ?? at) < at) next += 1; // inside a text: its blank cannot be told from others
    restored.push(item);
  }
  return at === letters ? restored : items;
}

const withSigns = (text: string) => text.replaceAll("\u000e", "ffi").replaceAll("\u000f", "ffl");

/** Puts a ligature in the place of the blank before a text, or at the end or beginning of a line. */
function join(before: Item[], item: Item, { text, share }: Ligature, letter: number): void {
  const last = before.findLastIndex(({ str }) => str.trim() !== "");
  const blankAt = before.findLastIndex(({ str, width }) => str === " " && width > 0);
  const blank = blankAt > last ? before[blankAt] : undefined;
  const word = before[last];
  if (blank) {
    const isWide = blank.width > (share + BLANK) * letter;
    const parted = text === "ff" ? `${text} ` : ` ${text}`; // no word begins with ff
    before[blankAt] = { ...blank, str: isWide ? parted : text };
  } else if (word && (text === "ff" || !word.hasEOL)) {
    before[last] = { ...word, str: `${word.str}${text}`, width: word.width + share * letter };
  } else {
    const [a = 1, b = 0, c = 0, d = 1, x = 0, y = 0] = item.transform;
    const width = share * letter;
    Object.assign(item, {
      str: `${text}${item.str}`,
      width: item.width + width,
      transform: [a, b, c, d, x - width, y],
    });
  }
}

function fontsOfWords(items: readonly GivenItem[], isDrawnFont: (font: string) => boolean): ReadonlySet<string> {
  const sums = new Map<string, { letters: number; texts: number }>();
  for (const item of items) {
    if (!("str" in item) || item.str.trim() === "" || !isDrawnFont(item.fontName)) continue;
    const { letters, texts } = sums.get(item.fontName) ?? { letters: 0, texts: 0 };
    sums.set(item.fontName, { letters: letters + lettersIn(item.str), texts: texts + 1 });
  }
  return new Set(
    [...sums].filter(([, { letters, texts }]) => letters >= LETTERS_OF_WORDS * texts).map(([font]) => font),
  );
}

/** The ligatures that a page draws in these fonts, and how many letters it draws in all. */
function findLigatures({ fnArray, argsArray }: Drawing, fonts: ReadonlySet<string>) {
  const found: (Ligature & { font: string })[] = [];
  const widths = new Map<string, { sum: number; letters: number }>();
  let letters = 0;
  let font = "";
  for (const [at, command] of fnArray.entries()) {
    const args = argsArray[at];
    const [first]: unknown[] = Array.isArray(args) ? args : [];
    if (command === OPS.setFont && typeof first === "string") font = first;
    if (command !== OPS.showText || !Array.isArray(first)) continue;
    for (const part of first) {
      if (typeof part === "number") continue;
      const { data: glyph } = glyphSchema.safeParse(part);
      if (!glyph) continue;
      const text = fonts.has(font) ? blankLigatures.get(glyph.originalCharCode) : undefined;
      if (text !== undefined) found.push({ before: letters, text, share: glyph.width, font });
      const sum = widths.get(font) ?? { sum: 0, letters: 0 };
      if (text === undefined) widths.set(font, { sum: sum.sum + glyph.width, letters: sum.letters + 1 });
      letters += lettersIn(glyph.unicode);
    }
  }
  const meanOf = (name: string) => {
    const { sum, letters: count } = widths.get(name) ?? { sum: 1, letters: 1 };
    return Math.max(sum / Math.max(1, count), 1e-9);
  };
  return {
    found: found.map(({ font: name, ...ligature }) => ({ ...ligature, share: ligature.share / meanOf(name) })),
    letters,
  };
}
