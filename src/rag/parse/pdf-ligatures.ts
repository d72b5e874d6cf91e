import { OPS } from "unpdf/pdfjs";
import { z } from "zod";
import type { Drawing } from "./pdf-pictures.ts";
import type { GivenItem } from "./pdf-texts.ts";

/** The codes of ff, fi and fl in the fonts of TeX, which the library takes for blanks. */
const ligatures = new Set([11, 12, 13]);
/** A font prints words if its texts have so many letters on average; fonts of equations print single ones. */
const LETTERS_OF_WORDS = 2.2;

const glyphSchema = z.object({ originalCharCode: z.number() });

/**
 * Counts the ligatures of a page in fonts that the document draws itself, as old papers of TeX do. They are missing in the
 * texts, where "specific" is "speci c".
 */
export function countLigatures(
  items: readonly GivenItem[],
  { fnArray, argsArray }: Drawing,
  isDrawnFont: (font: string) => boolean,
): number {
  const fonts = fontsOfWords(items, isDrawnFont);
  let [count, font] = [0, ""];
  for (const [at, command] of fonts.size === 0 ? [] : fnArray.entries()) {
    const args = argsArray[at];
    const [first]: unknown[] = Array.isArray(args) ? args : [];
    if (command === OPS.setFont && typeof first === "string") font = first;
    if (command !== OPS.showText || !Array.isArray(first) || !fonts.has(font)) continue;
    count += first.filter((glyph) => ligatures.has(glyphSchema.safeParse(glyph).data?.originalCharCode ?? -1)).length;
  }
  return count;
}

function fontsOfWords(items: readonly GivenItem[], isDrawnFont: (font: string) => boolean): ReadonlySet<string> {
  const sums = new Map<string, { letters: number; texts: number }>();
  for (const item of items) {
    if (!("str" in item) || item.str.trim() === "" || !isDrawnFont(item.fontName)) continue;
    const { letters, texts } = sums.get(item.fontName) ?? { letters: 0, texts: 0 };
    sums.set(item.fontName, { letters: letters + item.str.length, texts: texts + 1 });
  }
  return new Set(
    [...sums].filter(([, { letters, texts }]) => letters >= LETTERS_OF_WORDS * texts).map(([font]) => font),
  );
}
