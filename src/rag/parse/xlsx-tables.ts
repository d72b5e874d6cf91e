import type { Repetition } from "./office-grid.ts";
import { toMarkdownTable } from "./table.ts";
import type { Merge, Sheet, SheetCell, SheetRow } from "./xlsx-sheet.ts";

const MAX_HEAD_ROWS = 5;
const MAX_STEPS = 5_000_000; // rows that are looked at for cells shown as one
/** A table may have this many places for each cell that is filled, and some more; a sparser sheet is written cell by cell. */
const MAX_SPARSENESS = 20;
const FREE_PLACES = 100_000;
const MAX_NAME = 100; // characters of a name that is repeated

type Head = { columns: readonly number[]; texts: ReadonlyMap<number, string> };

/**
 * Writes the cells of a sheet: rows that stand together as a table under their first row, lines of one cell above it as text.
 * A table that goes on behind an empty row keeps its head. Cells that are shown as one stand in each place.
 */
export function writeSheet({ rows, merges }: Sheet, repetition: Repetition): string[] {
  const heads = fillMerges(rows, merges, repetition);
  const texts: string[] = [];
  let last: Head | undefined;
  for (const block of blocksOf(rows)) {
    const from = block.findIndex(({ cells }) => cells.length > 1);
    const lines = from === -1 ? block : block.slice(0, from);
    if (lines.length > 0) texts.push(lines.map(({ cells }) => cells.map(({ text }) => text).join(" ")).join("\n"));
    if (from === -1) continue;
    const body = block.slice(from);
    const isMore = last !== undefined && goesOn(body, last);
    const count = isMore ? 0 : Math.min(headRowsOf(body, heads), body.length);
    if (!isMore || last === undefined) last = headOf(body.slice(0, count));
    texts.push(writeTable(last, body.slice(count)));
  }
  return texts;
}

/** Rows with no empty row between them. */
function blocksOf(rows: readonly SheetRow[]): SheetRow[][] {
  const blocks: SheetRow[][] = [];
  for (const row of rows) {
    const open = blocks.at(-1);
    if (open && !row.isApart) open.push(row);
    else blocks.push([row]);
  }
  return blocks;
}

/** Whether rows belong to the table above: they have numbers at once, and no other columns. */
function goesOn([first]: readonly SheetRow[], { columns }: Head): boolean {
  return (
    first?.cells.some(({ isText }) => !isText) === true && first.cells.every(({ column }) => columns.includes(column))
  );
}

function headRowsOf([first]: readonly SheetRow[], heads: ReadonlyMap<number, number>): number {
  return Math.min(MAX_HEAD_ROWS, heads.get(first?.index ?? 0) ?? 1);
}

/** The names of columns; one below several has them all. */
function headOf(rows: readonly SheetRow[]): Head {
  const texts = new Map<number, string>();
  for (const { column, text } of rows.flatMap(({ cells }) => cells)) {
    const above = texts.get(column);
    if (above === undefined) texts.set(column, text);
    else if (above !== text) texts.set(column, `${above} ${text}`);
  }
  return { texts, columns: [...texts.keys()] };
}

function writeTable(head: Head, body: readonly SheetRow[]): string {
  const used = new Set(head.columns);
  let filled = used.size;
  for (const { cells } of body) {
    filled += cells.length;
    for (const { column } of cells) used.add(column);
  }
  const columns = [...used].sort((left, right) => left - right);
  if (columns.length * (body.length + 1) > filled * MAX_SPARSENESS + FREE_PLACES) return writeSparse(head, body);
  const places = new Map(columns.map((column, at) => [column, at]));
  const rows = body.map(({ cells }) => {
    const row: string[] = Array.from({ length: 1 + (places.get(cells.at(-1)?.column ?? 0) ?? 0) }, () => "");
    for (const { column, text } of cells) row[places.get(column) ?? 0] = text;
    return row;
  });
  return toMarkdownTable({ rows: [columns.map((column) => head.texts.get(column) ?? ""), ...rows] });
}

/** Each row as a line of its cells, with the names of their columns. */
function writeSparse({ texts }: Head, body: readonly SheetRow[]): string {
  const named = ({ column, text }: SheetCell) =>
    texts.has(column) ? `${texts.get(column)?.slice(0, MAX_NAME)}: ${text}` : text;
  return [[...texts.values()].join(", "), ...body.map(({ cells }) => cells.map(named).join(", "))].join("\n");
}

/**
 * Puts the text of cells that are shown as one in each of their places in a row that holds something. Returns how many rows a
 * head has that begins in a row: more than one if cells in it span several rows, or lie above several columns.
 */
function fillMerges(rows: readonly SheetRow[], merges: readonly Merge[], repetition: Repetition): Map<number, number> {
  const heads = new Map<number, number>();
  const at = new Map(rows.map((row, place) => [row.index, place]));
  for (const { cells } of rows) for (const { text } of cells) repetition.left += text.length;
  let steps = 0;
  for (const { top, bottom, left, right } of merges) {
    const first = at.get(top);
    const source = first === undefined ? undefined : rows[first]?.cells.find(({ column }) => column === left);
    if (first === undefined || !source) continue;
    const width = rows[first]?.cells.length ?? 0;
    const isTitle = width === 1 && top === bottom;
    if (isTitle) continue; // once is enough
    heads.set(top, Math.max(heads.get(top) ?? 1, bottom > top ? bottom - top + 1 : 2));
    for (let place = first; (rows[place]?.index ?? Number.POSITIVE_INFINITY) <= bottom; place += 1) {
      const row = rows[place];
      steps += 1 + right - left;
      if (!row || steps > MAX_STEPS) return heads;
      const present = new Set(row.cells.map(({ column }) => column));
      for (let column = left; column <= right; column += 1) {
        if (present.has(column)) continue;
        repetition.left -= source.text.length + 3;
        if (repetition.left < 0) return heads;
        row.cells.push({ column, text: source.text, isText: source.isText });
      }
      row.cells.sort((one, other) => one.column - other.column);
    }
  }
  return heads;
}
