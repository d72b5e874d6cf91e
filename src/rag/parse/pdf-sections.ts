import { collectSections, type Section } from "./section.ts";

/** A line of a page: the size of its letters, and the font that most of them have. A whole table is one line. */
export type Line = { text: string; size: number; font: string; isTable?: boolean };

/** A heading's letters are larger than the text's by this factor at least. */
const HEADING_SCALE = 1.08;
const MAX_HEADING_CHARACTERS = 120;
/** `5.9.4 Orphaning a package`, but not the entry of a table of contents, which ends with its page. */
const numberedHeading = /^(\d+(?:\.\d+)+)\.?\s+\p{Lu}.*[^\d\s.]$/u;
/** A first or last line of this many pages is a running head or foot. Page numbers and chapter numbers do not count. */
const RUNNING_FROM = 3;

/**
 * Sections of a PDF by its headings, which it does not mark: they are lines in larger letters, or numbered lines in another
 * font than the text. A section ends with its page. Running heads and feet stay where they stand first.
 */
export function sectionsOf(pages: readonly (readonly Line[])[]): Section[] {
  const [size, font] = [commonest(pages, (line) => line.size), commonest(pages, (line) => line.font)];
  const levelOf = makeLevels(pages, { size: size ?? 0, font: font ?? "" });
  const found = collectSections();
  for (const [index, lines] of withoutRunningLines(pages).entries()) {
    let open: string[] = [];
    const close = () => {
      found.add(toText(open), { page: index + 1 });
      open = [];
    };
    let isInHeading = false;
    for (const line of lines) {
      const level = line.isTable ? undefined : levelOf(line);
      if (level !== undefined && !isInHeading) close();
      if (level !== undefined) found.enter(level, line.text.trim());
      isInHeading = level !== undefined;
      open.push(line.isTable ? `\n${line.text}\n` : line.text);
    }
    close();
  }
  return found.sections;
}

/** Joins words that are hyphenated at the end of a line, and drops the leader dots of a table of contents. */
function toText(lines: readonly string[]): string {
  const joined = lines.join("\n").replace(/(\p{Ll})-\n(\p{Ll})/gu, "$1$2");
  return joined.replace(/(?: ?\.){4,} ?/g, " ");
}

/** The value that most letters of a document have. */
function commonest<T>(pages: readonly (readonly Line[])[], pick: (line: Line) => T): T | undefined {
  const letters = new Map<T, number>();
  for (const line of pages.flat().filter(({ isTable }) => !isTable))
    letters.set(pick(line), (letters.get(pick(line)) ?? 0) + line.text.length);
  return [...letters].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/** The level of a line that is a heading: the depth of its number, else the place of its size among those of headings. */
function makeLevels(pages: readonly (readonly Line[])[], body: { size: number; font: string }) {
  const isLarge = ({ text, size, isTable }: Line) =>
    !isTable && size >= body.size * HEADING_SCALE && text.length <= MAX_HEADING_CHARACTERS && /\p{L}{2}/u.test(text);
  const large = pages.flat().filter(isLarge);
  const sizes = [...new Set(large.map(({ size }) => size))].sort((a, b) => b - a);
  return (line: Line): number | undefined => {
    const number = line.text.length <= MAX_HEADING_CHARACTERS ? numberedHeading.exec(line.text)?.[1] : undefined;
    if (number !== undefined && (line.font !== body.font || isLarge(line))) return number.split(".").length;
    return isLarge(line) ? sizes.indexOf(line.size) + 1 : undefined;
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
