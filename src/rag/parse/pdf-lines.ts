import type { Line } from "./pdf-line.ts";
import { findTables, type PageTable } from "./pdf-table.ts";
import type { PlacedText } from "./pdf-texts.ts";
import { toMarkdownTable } from "./table.ts";

/** Lengths, as parts of the height of letters. */
const LINE_DROP = 0.75; // from here on a smaller text that stands lower has a line of its own; an index stands higher
const JUMP = 1.2; // so has any text that stands so much higher or lower
const MAX_RISE = 0.8; // of a superscript above the line that it stands in
const MIN_RISE = 0.18;
const NEAR = 0.5; // between a text and the superscript that follows it
const NEAR_DRAWN = 0.9; // likewise, where the library takes every raised letter for a new line
/** A superscript is smaller than its line by this factor at least. */
const RAISED_SCALE = 0.87;
/** A blank is as wide as this part of the line's letters on average, or it stands between the letters of a word. */
const BLANK = 0.2;
/** A line whose letters are all there twice, each drawn beside itself. Three different ones make it no chance. */
const doubled = /^\s*(?:(\S)\s*\1\s*){3,}$/u;
const ordinal = /^(?:st|nd|rd|th)$/i;

type OpenLine = { texts: PlacedText[]; base: PlacedText };

/** Puts the texts of a page together to lines, in the order in which the page draws them. A table is one line. */
export function toLines(texts: readonly PlacedText[]): Line[] {
  const lines: Line[] = [];
  let open: OpenLine | undefined;
  let isEnded = false; // the library sees the end of the open line
  const end = () => {
    if (open) lines.push(toLine(open));
    open = undefined;
    isEnded = false;
  };
  const tables = findTables(texts.map(toPageItem));
  const tableOf = new Map(tables.flatMap((table) => [...table.items].map((item) => [item, table])));
  const shown = new Set<PageTable>();
  for (const [index, text] of texts.entries()) {
    const table = tableOf.get(index);
    if (table) {
      end();
      if (!shown.has(table)) lines.push({ text: toMarkdownTable(table), size: 0, font: "", y: text.y, isTable: true });
      shown.add(table);
      continue;
    }
    const isBlank = text.str.trim() === "";
    if (!isBlank && open && !isOfLine(open, text, isEnded)) end();
    if (!isBlank) isEnded = false;
    if (open) open.texts.push(text);
    else if (!isBlank) open = { texts: [text], base: text };
    if (open && !isBlank && text.str.length > open.base.str.length) open.base = text;
    if (!text.hasEnd) continue;
    if (!open) lines.push({ text: "", size: 0, font: "", y: text.y });
    else if (isEnded && text.str === "") end();
    else isEnded = true;
  }
  end();
  return lines;
}

/** A text as the search for tables wants it. */
function toPageItem({ str, x, y, width, size }: PlacedText) {
  return { str, transform: [size, 0, 0, size, x, y], width, height: size };
}

function isOfLine({ texts, base }: OpenLine, text: PlacedText, isEnded: boolean): boolean {
  const last = texts.findLast(({ str }) => str.trim() !== "") ?? base;
  const size = Math.max(base.size, text.size);
  const rise = text.y - base.y;
  if (Math.abs(rise) > JUMP * size) return false;
  // The library goes by the distance alone, so it takes what is close below a large title for a part of it.
  if (text.size < base.size && -rise >= LINE_DROP * base.size) return false;
  if (!isEnded) return true;
  const gap = text.x - last.x - last.width;
  const isRaised = text.y !== last.y && Math.abs(rise) <= MAX_RISE * size;
  return isRaised && gap > -NEAR * size && gap < (text.isDrawn ? NEAR_DRAWN : NEAR) * size;
}

function toLine({ texts, base: first }: OpenLine): Line {
  const base = mostOf(texts, first);
  const letters = texts.filter(({ str }) => str.trim() !== "");
  const mean = sum(letters.map(({ width }) => width)) / Math.max(1, sum(letters.map(({ str }) => str.length)));
  const raised = findRaised(letters, base);
  let line = "";
  let last: PlacedText | undefined;
  for (const text of texts) {
    if (text.str.trim() === "") {
      if (text.str !== "" && (!text.isDrawn || text.width >= BLANK * mean)) line += " ";
      continue;
    }
    // Where the library saw an end, it gave no blank.
    if (last?.hasEnd && text.x - last.x - last.width >= BLANK * mean && !line.endsWith(" ")) line += " ";
    line += raised.has(text) && !(last && raised.has(last)) ? `^${text.str}` : text.str;
    last = text;
  }
  const size = Math.round(base.size * 10) / 10;
  const { font, y, isDrawn } = base;
  if (doubled.test(line) && new Set(line.match(/\p{L}/gu)).size > 2) line = line.replace(/(\S)\s*\1/gu, "$1");
  return { text: line.replace(/[^\S\n]+/g, " "), size, font, y, ...(isDrawn && { isDrawn }) };
}

/** The superscripts of a line: smaller than the text before them, and higher. The numerator of a fraction may have some, too. */
function findRaised(texts: readonly PlacedText[], base: PlacedText): ReadonlySet<PlacedText> {
  const raised = new Set<PlacedText>();
  const isFull = ({ size, isDrawn }: PlacedText) => isDrawn || size > RAISED_SCALE * base.size;
  let above = base; // the text that they stand above
  for (const [at, text] of texts.entries()) {
    const rise = text.y - above.y;
    const isHigh = rise >= MIN_RISE * above.size && rise <= MAX_RISE * above.size;
    const isRaised = isHigh && (text.isDrawn || text.size <= RAISED_SCALE * above.size);
    if (!isRaised) {
      if (isFull(text)) above = text;
    } else if (isMarkable(text, texts[at - 1], texts[at + 1])) raised.add(text);
  }
  return raised;
}

/** Whether a raised text means something else than the same text on the line: a power or a note, not the A of a logo, nor `1st`. */
function isMarkable({ str, x, width, size }: PlacedText, before?: PlacedText, after?: PlacedText): boolean {
  const text = str.trim();
  if (!/^[(+−–-]*(?:[\p{L}\p{N}]|$)/u.test(text)) return false;
  if (ordinal.test(text) && /\d$/.test(before?.str ?? "")) return false;
  const isInWord = /\p{L}$/u.test(before?.str ?? "") && /^\p{L}/u.test(after?.str ?? "");
  return !(/^\p{L}+$/u.test(text) && isInWord && (after?.x ?? 0) - x - width < BLANK * size);
}

/** The first text of those that have the font and size of most letters. */
function mostOf(texts: readonly PlacedText[], otherwise: PlacedText): PlacedText {
  const kinds = Map.groupBy(texts, ({ font, size, y }) => `${font} ${size.toFixed(1)} ${y.toFixed(1)}`);
  const lettersOf = (kind: readonly PlacedText[]) => sum(kind.map(({ str }) => str.trim().length));
  const [most] = [...kinds.values()].sort((one, other) => lettersOf(other) - lettersOf(one));
  return most?.[0] ?? otherwise;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
