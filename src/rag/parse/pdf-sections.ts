import { footnotesLast } from "./pdf-footnotes.ts";
import type { Line } from "./pdf-line.ts";
import { findNumberedLines, numberedLine } from "./pdf-numbered.ts";
import { collectSections, type Section } from "./section.ts";

type Heading = { level: number; text: string; size: number };

/** A heading's letters are larger than the text's by this factor at least. */
const HEADING_SCALE = 1.08;
const MAX_HEADING_CHARACTERS = 120;
/** Of a heading that is printed over several lines. */
const MAX_WRAPPED_CHARACTERS = 240;
/** So many numbered headings of a size show its level. */
const NUMBERED_FROM = 3;
/** A first or last line of this many pages is a running head or foot. Page numbers and chapter numbers do not count. */
const RUNNING_FROM = 3;

/**
 * Sections of a PDF by its headings, which it does not mark: they are lines in larger letters, or numbered lines in another
 * font than the text. A section ends with its page. Running heads and feet stay where they stand first.
 */
export function sectionsOf(given: readonly (readonly Line[])[]): Section[] {
  const pages = settleSizes(given);
  const body = { size: commonest(pages, (line) => line.size) ?? 0, font: commonest(pages, (line) => line.font) ?? "" };
  const { levelOf, isNumbered } = makeLevels(pages, body);
  const toText = makeToText(pages);
  const found = collectSections();
  for (const [index, kept] of withoutRunningLines(pages).entries()) {
    const lines = footnotesLast(kept, body.size);
    let open: string[] = [];
    const close = () => {
      found.add(toText(open), { page: index + 1 });
      open = [];
    };
    let heading: Heading | undefined;
    for (const line of lines) {
      const level = line.isTable ? undefined : levelOf(line);
      if (level === undefined) heading = undefined;
      else {
        if (heading === undefined) close();
        heading = (isNumbered(line) ? undefined : continued(heading, line, toText)) ?? {
          level,
          text: line.text.trim(),
          size: line.size,
        };
        found.enter(heading.level, heading.text);
      }
      open.push(line.isTable ? `\n${line.text}\n` : line.text);
    }
    close();
  }
  return found.sections;
}

/** The heading with the line after it, if that continues it: its letters have the same size. */
function continued(
  heading: Heading | undefined,
  { text, size }: Line,
  toText: (lines: readonly string[]) => string,
): Heading | undefined {
  if (heading?.size !== size) return undefined;
  const joined = toText([heading.text, text.trim()]).replace("\n", " ");
  return joined.length > MAX_WRAPPED_CHARACTERS ? undefined : { ...heading, text: joined };
}

/** Joins words that are hyphenated at the end of a line, and drops the leader dots of a table of contents. */
function makeToText(pages: readonly (readonly Line[])[]) {
  const join = makeJoiner(textsOf(pages));
  return (lines: readonly string[]) => join(lines.join("\n")).replace(/(?: ?\.){4,} ?/g, " ");
}

function* textsOf(pages: readonly (readonly Line[])[]): Generator<string> {
  for (const lines of pages) for (const { text } of lines) yield text;
}

/** The value that most letters of a document have. */
function commonest<T>(pages: readonly (readonly Line[])[], pick: (line: Line) => T): T | undefined {
  const letters = new Map<T, number>();
  for (const line of pages.flat().filter(({ isTable, size }) => !isTable && size > 0))
    letters.set(pick(line), (letters.get(pick(line)) ?? 0) + line.text.length);
  return [...letters].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/**
 * The level of a line that is a heading: the depth of its number, else that of the numbered headings of its size. Headings
 * larger than all numbered ones stand above them, as those of chapters do. Without numbered headings their sizes rank them.
 */
function makeLevels(pages: readonly (readonly Line[])[], body: { size: number; font: string }) {
  const oneLevel = findNumberedLines(pages, body.font);
  const isLarge = ({ text, size, isTable }: Line) =>
    !isTable && size >= body.size * HEADING_SCALE && text.length <= MAX_HEADING_CHARACTERS && /\p{L}{2}/u.test(text);
  const depthOf = (line: Line): number | undefined => {
    if (oneLevel.has(line)) return 1;
    const number = line.text.length <= MAX_HEADING_CHARACTERS ? numberedLine.exec(line.text)?.[1] : undefined;
    const isApart = line.size > 0 && line.font !== body.font;
    return number !== undefined && (isApart || isLarge(line)) ? number.split(".").length : undefined;
  };
  const bySize = Map.groupBy(
    pages.flatMap((lines, page) => lines.filter(isLarge).map((line) => ({ page, ...line }))),
    (line) => line.size,
  );
  const sizes = [...bySize.keys()].sort((left, right) => right - left);
  const levels = new Map<number, number>();
  for (const [size, lines] of bySize) {
    const depths = lines.map(depthOf).filter((depth) => depth !== undefined);
    if (depths.length >= NUMBERED_FROM) levels.set(size, Math.min(...depths));
  }
  const largest = sizes.find((size) => levels.has(size));
  const top = levels.get(largest ?? 0);
  for (const [index, size] of sizes.entries()) {
    const [first, ...others] = bySize.get(size) ?? [];
    const isTitle = others.every(({ page }) => page === first?.page);
    if (top === undefined || (index === 0 && isTitle)) levels.set(size, index + 1);
    else if (size > (largest ?? 0)) levels.set(size, isTitle ? top : Math.max(1, top - 1));
    else if (!levels.has(size)) levels.set(size, (levels.get(sizes[index - 1] ?? 0) ?? 0) + 1);
  }
  return {
    levelOf: (line: Line): number | undefined => depthOf(line) ?? (isLarge(line) ? levels.get(line.size) : undefined),
    /** Whether a line has a number of its own, so that it continues no heading. */
    isNumbered: (line: Line): boolean => oneLevel.has(line) || numberedLine.test(line.text),
  };
}

function withoutRunningLines(pages: readonly (readonly Line[])[]): (readonly Line[])[] {
  const fold = (line: Line | undefined) =>
    (line?.isTable ? line.text : line?.text.replace(/\d+|\b[ivxlc]+\b/g, "").trim()) ?? "";
  const ends = [0, -1].map((at) => Map.groupBy(pages, (lines) => fold(lines.at(at))));
  return pages.map((lines) => {
    const [isHead, isFoot] = [0, -1].map((at, place) => {
      const alike = ends[place]?.get(fold(lines.at(at))) ?? [];
      return alike.length >= RUNNING_FROM && alike[0] !== lines;
    });
    return lines.slice(isHead ? 1 : 0, isFoot ? -1 : undefined);
  });
}

/** A drawn font that is larger or smaller than the commonest one by less than this has its size: bold letters are wider. */
const SAME_SIZE = { from: 0.9, to: 1.25 };

/**
 * Gives the lines of each drawn font one size. The height of such letters is guessed by their width on each page, and a guess
 * from few letters is worth little, so that lines of the text would pass for headings.
 */
function settleSizes(pages: readonly (readonly Line[])[]): (readonly Line[])[] {
  const fonts = new Map<string, { letters: number; sum: number }>();
  for (const { font, size, text, isDrawn } of pages.flat()) {
    if (!isDrawn) continue;
    const { letters, sum } = fonts.get(font) ?? { letters: 0, sum: 0 };
    fonts.set(font, { letters: letters + text.length, sum: sum + size * text.length });
  }
  if (fonts.size === 0) return [...pages];
  const sizes = [...fonts].map(([font, { letters, sum }]) => ({ font, letters, size: sum / Math.max(1, letters) }));
  const body = sizes.reduce((most, each) => (each.letters > most.letters ? each : most)).size;
  const settled = new Map(
    sizes.map(({ font, size }) => {
      const isBody = size >= SAME_SIZE.from * body && size <= SAME_SIZE.to * body;
      return [font, Math.round((isBody ? body : size) * 10) / 10];
    }),
  );
  return pages.map((lines) =>
    lines.map((line) => (line.isDrawn ? { ...line, size: settled.get(line.font) ?? line.size } : line)),
  );
}

const brokenCapitals = /(?<!\p{L})(\p{Lu}+)-\n(\p{Lu}+)(?!\p{L})/gu;

/**
 * Makes a function that joins the words that are hyphenated at the end of a line. Of words in capitals it leaves those that a
 * hyphen joins always, as `TCP-IP`: a part of them stands alone in `lines`, too, or cannot be spoken.
 */
function makeJoiner(lines: Iterable<string>): (text: string) => string {
  let known: Set<string> | undefined; // read when the first such word is met
  const isSyllable = (part: string) => part.length > 1 && /[AEIOUYÄÖÜÀ-ÝΑΕΗΙΟΥΩАЕИОУЫЭЮЯ]/u.test(part);
  const joinCapitals = (whole: string, head: string, tail: string) => {
    known ??= wordsInCapitals(lines);
    const isOne = known.has(head + tail) || !(known.has(head) || known.has(tail));
    return isOne && isSyllable(head) && isSyllable(tail) ? `${head}${tail}` : whole;
  };
  return (text) =>
    text
      .replace(/\u00ad\n/g, "")
      .replace(/(\p{Ll})-\n(\p{Ll})/gu, "$1$2")
      .replace(brokenCapitals, joinCapitals);
}

function wordsInCapitals(lines: Iterable<string>): Set<string> {
  const words = new Set<string>();
  let isRest = false; // the line begins with the rest of a word
  for (const line of lines) {
    for (const match of line.matchAll(/(?<![\p{L}-])\p{Lu}{2,}(?![\p{L}-])/gu)) {
      if (!isRest || match.index > 0) words.add(match[0]);
    }
    isRest = line.endsWith("-");
  }
  return words;
}
