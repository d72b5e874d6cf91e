import { defined } from "../lib/defined.ts";
import { blocksOf, cellsOf } from "./parse/markdown-table.ts";
import type { Section } from "./parse/section.ts";
import type { SourceType } from "./schemas.ts";
import { splitRecursively, wholeCharacters } from "./split-recursively.ts";
import { tokensOf } from "./token-count.ts";

/** A chunk's text, its length in tokens, and its place in the document. */
export type ChunkText = { content: string; tokens: number; page?: number; headings?: readonly string[] };

/** Longest chunk, in characters. */
export const CHUNK_CHARACTERS = 1_600; // about 400 tokens of English
const OVERLAP_CHARACTERS = 240; // about 60
const TARGET_TOKENS = 400;
const MAX_TOKENS = 512; // a longer piece is split again: in dense scripts 1,600 characters are up to four times too long
const SMALL_SECTION = 400; // characters; a shorter section is joined to its neighbour under the same heading
const MAX_RESPLITS = 4;
const SLICE_CHARACTERS = 65_536; // the largest that is split in one go
const MAX_HEAD_SHARE = 0.75; // of a piece: a table with a longer head is split by columns
const PART_HEAD_SHARE = 0.4; // of such a part: its rows are about as long
const BORDERS = 7; // characters of a head besides each name: what parts it from the next one, and the dashes below

/**
 * Splits sections into pieces of about 1,600 characters, by paragraph, line and word, never across pages or headings; tables
 * by row, each piece with the table's head. It measures characters: a splitter that counts tokens takes forty times as long.
 * It stops at the first piece beyond `atMost`.
 */
export function splitSections(
  sections: readonly Section[],
  type: SourceType,
  atMost = Number.POSITIVE_INFINITY,
): Section[] {
  const pieces: Section[] = [];
  for (const section of joinSmall(sections)) {
    for (const text of textsOf(section.text, type, CHUNK_CHARACTERS)) {
      if (/\S/.test(text)) pieces.push({ ...section, text });
      if (pieces.length > atMost) return pieces;
    }
  }
  return pieces;
}

/** Splits a text into pieces of `size` characters at most. A small piece beside a table is joined to it. */
function* textsOf(text: string, type: SourceType, size: number): Generator<string> {
  if (text.length <= size) return yield text.trim();
  const small = (SMALL_SECTION * size) / CHUNK_CHARACTERS;
  let held = "";
  for (const block of blocksOf(text)) {
    let isFirst = true;
    const isLead = "head" in block && held.length < small;
    const lead = isLead && held !== "" ? `${held}\n\n` : "";
    if (isLead) held = "";
    for (const piece of "prose" in block ? proseOf(block.prose, type, size) : rowsOf({ ...block, lead }, type, size)) {
      if (isFirst && held !== "" && piece.length < small && held.length + piece.length + 2 <= size)
        held += `\n\n${piece}`;
      else {
        if (held !== "") yield held;
        held = piece;
      }
      isFirst = false;
    }
  }
  if (held !== "") yield held;
}

function* proseOf(text: string, type: SourceType, size: number): Generator<string> {
  const overlap = Math.floor((size * OVERLAP_CHARACTERS) / CHUNK_CHARACTERS);
  for (const slice of slicesOf(text)) {
    if (slice.length <= size) yield slice.trim();
    else yield* splitRecursively(slice, type === "markdown", { size, overlap });
  }
}

type LedTable = { lead: string; head: string; rows: readonly string[] };

/**
 * Splits a table by rows, and repeats its head; the first piece begins with `lead`. A row that is too long for that is
 * written as lines of its columns' names and texts, each piece with the first of them. A table with a very long head is
 * split by columns, each part with the first of them.
 */
function* rowsOf({ lead, head, rows }: LedTable, type: SourceType, size: number): Generator<string> {
  if (head.length > size * MAX_HEAD_SHARE) {
    const parts = columnsOf({ head, rows }, size * PART_HEAD_SHARE);
    if (!parts) return yield* proseOf([lead + head, ...rows].join("\n"), type, size);
    for (const [at, part] of parts.entries()) yield* rowsOf({ lead: at === 0 ? lead : "", ...part }, type, size);
    return;
  }
  const room = size - head.length;
  let open: string[] = [];
  let length = lead.length;
  let top = lead + head;
  const close = () => {
    const piece = [top, ...open].join("\n");
    [open, length, top] = [[], 0, head];
    return piece;
  };
  for (const row of rows) {
    const isLong = row.length + 1 > room;
    if (length + row.length + 1 > room && (open.length > 0 || top !== head)) yield close();
    if (isLong) yield* longRowOf(head, row, type, size);
    else {
      open.push(row);
      length += row.length + 1;
    }
  }
  if (open.length > 0 || rows.length === 0) yield close();
}

/**
 * Parts of a table, each of the first column and as many others as a head of `most` characters names; undefined if that has no
 * room for one of them.
 */
function columnsOf({ head, rows }: Omit<LedTable, "lead">, most: number): Omit<LedTable, "lead">[] | undefined {
  const names = cellsOf(head.slice(0, head.indexOf("\n")));
  const cells = rows.map(cellsOf);
  const width = cells.reduce((widest, { length }) => Math.max(widest, length), names.length);
  const lengthOf = (column: number) => (names[column] ?? "").length + BORDERS;
  const room = most - lengthOf(0) - BORDERS;
  const groups: number[][] = [];
  let left = 0;
  for (let column = 1; column < width; column += 1) {
    if (lengthOf(column) > room) return undefined;
    if (lengthOf(column) > left) {
      groups.push([]);
      left = room;
    }
    groups.at(-1)?.push(column);
    left -= lengthOf(column);
  }
  const rowOf = (row: readonly string[], group: readonly number[]) => {
    const last = group.findLastIndex((column) => (row[column] ?? "") !== "");
    return `| ${[0, ...group.slice(0, last + 1)].map((column) => row[column] ?? "").join(" | ")} |`;
  };
  const isIn = (row: readonly string[], group: readonly number[]) =>
    group === groups[0] || group.some((column) => (row[column] ?? "") !== "");
  if (groups.length === 0) return undefined;
  return groups.map((group) => ({
    head: `| ${[0, ...group].map((column) => names[column] ?? "").join(" | ")} |\n|${"---|".repeat(group.length + 1)}`,
    rows: cells.filter((row) => isIn(row, group)).map((row) => rowOf(row, group)),
  }));
}

function* longRowOf(head: string, row: string, type: SourceType, size: number): Generator<string> {
  const names = cellsOf(head.slice(0, head.indexOf("\n")));
  const lines = cellsOf(row).map((text, column) => (names[column] ? `${names[column]}: ${text}` : text));
  const [label = "", ...others] = lines;
  const isShort = label.length <= size / 8;
  const repeated = isShort ? `${label}\n` : "";
  for (const piece of proseOf((isShort ? others : lines).join("\n"), type, size - repeated.length)) {
    yield repeated + piece;
  }
}

/** Slices a text, if possible at the last end of a paragraph, line or word in the second half of each slice. */
function* slicesOf(text: string): Generator<string> {
  let from = 0;
  while (text.length - from > SLICE_CHARACTERS) {
    const slice = text.slice(from, from + SLICE_CHARACTERS);
    const ends = ["\n\n", "\n", " "].map((separator) => slice.lastIndexOf(separator));
    const length = ends.find((end) => end > SLICE_CHARACTERS / 2) ?? wholeCharacters(slice);
    yield slice.slice(0, length);
    from += length;
  }
  yield text.slice(from);
}

/** Counts a piece's tokens, and splits it again if there are too many. */
export function toChunks(piece: Section, type: SourceType, depth = 0): ChunkText[] {
  const { text, ...place } = piece;
  const tokens = tokensOf(text);
  if (tokens <= MAX_TOKENS || depth >= MAX_RESPLITS || text.length < 8) return [{ content: text, tokens, ...place }];
  const size = Math.max(4, Math.floor((text.length * TARGET_TOKENS * 0.95) / tokens));
  const chunks: ChunkText[] = [];
  for (const part of textsOf(text, type, size)) {
    if (/\S/.test(part)) chunks.push(...toChunks({ ...place, text: part }, type, depth + 1));
  }
  return chunks;
}

/** Joins neighbours if one of them is small and they share a page and a heading above both. */
function joinSmall(sections: readonly Section[]): Section[] {
  const joined: Section[] = [];
  for (const section of sections) {
    const last = joined.at(-1);
    const headings = commonHeadings(last?.headings, section.headings);
    const isNear = last && last.page === section.page && (headings !== undefined || last.headings === section.headings);
    const isSmall = last && Math.min(last.text.length, section.text.length) < SMALL_SECTION;
    const fits = last && last.text.length + section.text.length + 2 <= CHUNK_CHARACTERS;
    if (last && isNear && isSmall && fits) {
      joined[joined.length - 1] = { ...section, text: `${last.text}\n\n${section.text}`, ...defined({ headings }) };
    } else joined.push(section);
  }
  return joined;
}

function commonHeadings(left: Section["headings"], right: Section["headings"]): Section["headings"] {
  if (left === undefined || right === undefined) return undefined;
  const length = left.findIndex((part, index) => part !== right[index]);
  if (length === 0) return undefined;
  return length === -1 || length === left.length ? left : left.slice(0, length);
}
