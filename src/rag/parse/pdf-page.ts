import type { getDocumentProxy } from "unpdf";
import { type Annotations, readAnnotations, withEntries } from "./pdf-annotations.ts";
import { countUnknown } from "./pdf-fonts.ts";
import { withLigatures } from "./pdf-ligatures.ts";
import type { Line } from "./pdf-line.ts";
import { toLines } from "./pdf-lines.ts";
import { type Drawn, findDrawn } from "./pdf-pictures.ts";
import { type GivenItem, type PlacedText, placeTexts } from "./pdf-texts.ts";

/** A page as it was read. */
export type PageRead = Drawn &
  Pick<Annotations, "comments" | "stamps"> & {
    lines: Line[];
    /** How many letters and digits it prints. */
    letters: number;
    watermarks: string[];
    fonts: ReadonlySet<string>;
    /** Letters of an unreadable font were left out. */
    hasUnreadable: boolean;
    /** Signs whose font does not say what they are, as in equations. They are left out. */
    unknownSigns: number;
  };

type PdfDocument = Awaited<ReturnType<typeof getDocumentProxy>>;
type PdfPage = Awaited<ReturnType<PdfDocument["getPage"]>>;
type Sample = (font: string, text: string, hasMap: boolean) => void;

/** A page whose text takes more time of the processor, in ms, is not looked through for pictures: its commands may be millions. */
const MAX_TEXT_MS = 2_000;
const MAX_ITEMS = 20_000; // texts, likewise

/** Makes a reader of pages. `sample` is told what each font prints. */
export function makePageReader(pdf: PdfDocument, sample: Sample) {
  return {
    async read(number: number, unreadable?: ReadonlySet<string>): Promise<PageRead> {
      const page = await pdf.getPage(number);
      const before = process.cpuUsage();
      const { items: all, styles } = await page.getTextContent();
      const { user } = process.cpuUsage(before);
      const isHuge = all.length > MAX_ITEMS || user / 1_000 > MAX_TEXT_MS;
      const [left = 0, bottom = 0, right = 0, top = 0] = page.view;
      const area = Math.max(1, (right - left) * (top - bottom));
      const drawing = isHuge ? { fnArray: [], argsArray: [] } : await page.getOperatorList();
      const drawn = findDrawn(drawing, area);
      // Only fonts that are drawn by the document tell no ascent.
      const isDrawn = (font: string) => Number.isNaN(styles[font]?.ascent);
      const { entries, ...notes } = readAnnotations(await page.getAnnotations());
      const fonts = new Set(all.flatMap((item) => ("str" in item ? [item.fontName] : [])));
      const maps = new Map([...fonts].map((font) => [font, hasMap(page, font)]));
      for (const item of all) if ("str" in item) sample(item.fontName, item.str, maps.get(item.fontName) ?? true);
      page.cleanup();
      const whole = withLigatures(all, drawing, isDrawn);
      const items = unreadable ? whole.map((item) => withoutLetters(item, unreadable)) : whole;
      const placed = placeTexts(items, isDrawn);
      const lines = toLines(withEntries(placed.upright, entries));
      lines.push(...asideLines(placed.across));
      const letters = lines.reduce((sum, { text }) => sum + (text.match(/[\p{L}\p{N}]/gu)?.length ?? 0), 0);
      const hasUnreadable = unreadable !== undefined;
      const unknownSigns = lines.reduce((sum, { text }) => sum + countUnknown(text), 0);
      const { watermarks } = placed;
      return { lines, letters, watermarks, fonts, hasUnreadable, unknownSigns, ...drawn, ...notes };
    },
  };
}

/** Whether a font tells which letters its codes stand for. Many fonts do so by the names of their glyphs. */
function hasMap({ commonObjs }: PdfPage, font: string): boolean {
  const known: unknown = commonObjs.has(font) ? commonObjs.get(font) : undefined;
  if (typeof known !== "object" || known === null || !("toUnicode" in known)) return true;
  // The library makes up a map from each code to itself.
  return !(typeof known.toUnicode === "object" && known.toUnicode !== null && "lastChar" in known.toUnicode);
}

function withoutLetters(item: GivenItem, fonts: ReadonlySet<string>): GivenItem {
  return "str" in item && fonts.has(item.fontName) ? { ...item, str: "" } : item;
}

/** Labels that stand across the page: no headings, and no part of the running text. */
function asideLines(texts: readonly PlacedText[]): Line[] {
  return toLines(texts).map((line) => (line.isTable ? line : { ...line, size: 0, font: "" }));
}
