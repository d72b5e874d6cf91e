import type { Table } from "./table.ts";

/** A text of a page as pdf.js gives it; one without `str` marks structure. */
type PageItem = { str: string; transform: number[]; width: number; height: number } | { type: string };
/** A table, and the items of its page that it is made of. */
export type PageTable = Table & { items: ReadonlySet<number> };

/** What stands together on a line: a cell, if the line is a row. `at` is the number of its first item. */
type Piece = { text: string; x: number; right: number; y: number; size: number; at: number; items: number[] };
type Column = { x: number; right: number };
type Row = { pieces: Piece[]; y: number; size: number };

const MAX_ITEMS = 20_000; // on a page; of more no tables are looked for
const MAX_COLUMNS = 30;
const MIN_ROWS = 3;
/** Lengths, mostly as multiples of the letters' height. */
const GAP = 0.9; // a wider one parts two cells
const BLANK = 0.1; // a wider one parts two words
const SAME_LINE = 0.5;
const ROW_DISTANCE = 3.5; // between two rows at most
const FAR = 1.9; // from the next row, as a multiple of that one's distance to the row below
const LINE_DISTANCE = 1.5; // between two lines of one cell at most
const MIN_RIVER = 0.6; // between two columns
/** Share of rows that a page draws one after the other. Columns of prose are drawn one column after the other. */
const MIN_IN_ORDER = 0.6;
const MAX_PROSE_CELL = 60; // characters on average: longer second cells of two make a list of terms, not a table

const listMark = /^(?:[-*•–◦▪‣·]|\(?(?:\d{1,3}|[a-z]|[ivx]+)[.)])$/i;
const number = /^[\s\d.,:%±+−–-]+$/;
const comment = /^(?:#|\/[/*])/;
const leader = /(?:\. ?){4,}/;

/**
 * Finds the tables of a page by the places of its texts: at least three lines that follow each other, whose texts stand below
 * each other in columns with room between. What is not clear stays lines. Ruled lines are not looked at.
 */
export function findTables(items: readonly PageItem[]): PageTable[] {
  if (items.length > MAX_ITEMS) return [];
  const rows = toRows(toPieces(items));
  const tables: PageTable[] = [];
  for (let from = 0; from < rows.length; ) {
    if (isApart(rows, from)) {
      from += 1;
      continue;
    }
    const { columns, used } = followColumns(rows, from);
    const found = used > 1 ? toTable(rows.slice(from, from + used), columns) : undefined;
    if (found) tables.push(found);
    from += Math.max(1, used);
  }
  return tables;
}

/** Whether a row is far above the next one, as a running head is. */
function isApart(rows: readonly Row[], at: number): boolean {
  const [first, second, third] = [rows[at], rows[at + 1], rows[at + 2]];
  return !!first && !!second && !!third && first.y - second.y > FAR * (second.y - third.y);
}

function toPieces(items: readonly PageItem[]): Piece[] {
  const pieces: Piece[] = [];
  for (const [at, item] of items.entries()) {
    if (!("str" in item)) continue;
    const { str, transform, width, height: size } = item;
    const [, b = 0, c = 0, , x = 0, y = 0] = transform;
    if (str.trim() === "" || size <= 0 || b !== 0 || c !== 0) continue;
    const last = pieces.at(-1);
    const gap = x - (last?.right ?? 0);
    if (last && Math.abs(last.y - y) < SAME_LINE * last.size && gap > -SAME_LINE * size && gap < GAP * last.size) {
      const blank = gap > BLANK * size && !last.text.endsWith(" ") && !str.startsWith(" ") ? " " : "";
      Object.assign(last, { text: `${last.text}${blank}${str}`, right: Math.max(last.right, x + width) });
      last.items.push(at);
    } else pieces.push({ text: str, x, right: x + width, y, size, at, items: [at] });
  }
  return pieces;
}

/** The lines of a page from top to bottom, each from left to right. */
function toRows(pieces: readonly Piece[]): Row[] {
  const rows: Row[] = [];
  for (const piece of [...pieces].sort((a, b) => b.y - a.y || a.x - b.x)) {
    const last = rows.at(-1);
    if (last && last.y - piece.y < SAME_LINE * last.size) last.pieces.push(piece);
    else rows.push({ pieces: [piece], y: piece.y, size: piece.size });
  }
  for (const { pieces: line } of rows) line.sort((a, b) => a.x - b.x);
  return rows;
}

/** Follows the columns of the row at `from` downwards, and returns how many rows have them. */
function followColumns(rows: readonly Row[], from: number): { columns: Column[]; used: number } {
  const first = rows[from];
  let columns = first && first.pieces.length > 1 ? withPieces([], first.pieces) : undefined;
  if (columns === undefined) return { columns: [], used: 0 };
  let last = from; // the last row that surely belongs to them
  for (let at = from + 1; at < rows.length; at += 1) {
    const [row, above] = [rows[at], rows[at - 1]];
    if (!row || !above || above.y - row.y > ROW_DISTANCE * row.size) break;
    const wider = withPieces(columns, row.pieces);
    if (wider === undefined || wider.length > MAX_COLUMNS) break;
    if (row.pieces.length === 1 && (wider.length > columns.length || !isWithinTable(rows, at))) break;
    const isCell = row.pieces.length > 1 || (row.pieces[0]?.x ?? 0) > (columns[0]?.right ?? 0);
    if (isCell) last = at;
    columns = wider;
  }
  return { columns, used: last - from + 1 };
}

/** Whether a line of one piece belongs to the row above, or to the one below: it is close to one of them. */
function isWithinTable(rows: readonly Row[], at: number): boolean {
  const [above, row] = [rows[at - 1], rows[at]];
  return above !== undefined && row !== undefined && above.y - row.y <= LINE_DISTANCE * row.size;
}

/** The columns with the pieces of one more row in them; undefined where a piece stands in two, or two in one. */
function withPieces(columns: readonly Column[], pieces: readonly Piece[]): Column[] | undefined {
  if (pieces.length > MAX_COLUMNS) return undefined;
  const river = MIN_RIVER * (pieces[0]?.size ?? 0);
  const parts = [...columns.map((part) => ({ ...part, isColumn: true })), ...pieces.map(toPart)];
  const merged: (Column & { columns: number; pieces: number })[] = [];
  for (const { x, right, isColumn } of parts.sort((a, b) => a.x - b.x)) {
    const last = merged.at(-1);
    const [ofColumns, ofPieces] = isColumn ? [1, 0] : [0, 1];
    if (last === undefined || x >= last.right + river) {
      merged.push({ x, right, columns: ofColumns, pieces: ofPieces });
      continue;
    }
    last.right = Math.max(last.right, right);
    last.columns += ofColumns;
    last.pieces += ofPieces;
    if (last.columns > 1 || last.pieces > 1) return undefined;
  }
  return merged.map(({ x, right }) => ({ x, right }));
}

const toPart = ({ x, right }: Piece) => ({ x, right, isColumn: false });

/** The table of some rows; undefined where they are no table. */
function toTable(rows: readonly Row[], columns: readonly Column[]): PageTable | undefined {
  const grid = joinColumns(
    rows.map(({ pieces }) => columns.map((column) => pieces.find((piece) => isIn(piece, column)))),
  );
  const full = rows.filter(({ pieces }) => pieces.length > 1);
  if (full.length < MIN_ROWS || (grid[0]?.length ?? 0) < 2 || isListOrProse(rows, grid)) return undefined;
  return {
    rows: joinLines(rows, grid),
    items: new Set(rows.flatMap(({ pieces }) => pieces.flatMap(({ items }) => items))),
  };
}

type Grid = (Piece | undefined)[][];

const isIn = ({ x }: Piece, column: Column) => x >= column.x && x <= column.right;

/** Joins neighbouring columns that no row has both of: a head may stand beside its numbers, which end at the right. */
function joinColumns(grid: Grid): Grid {
  const width = grid[0]?.length ?? 0;
  const joined: number[][] = [];
  for (let column = 0; column < width; column += 1) {
    const last = joined.at(-1);
    const hasBoth = last && grid.some((row) => row[column] && last.some((other) => row[other]));
    if (last && !hasBoth) last.push(column);
    else joined.push([column]);
  }
  return grid.map((row) => joined.map((columns) => columns.map((column) => row[column]).find((piece) => piece)));
}

function isListOrProse(rows: readonly Row[], grid: Grid): boolean {
  const cells = grid.flat().filter((piece) => piece !== undefined);
  const isContents = grid.every((row) => /^\d+$/.test(row.findLast((piece) => piece)?.text.trim() ?? ""));
  if (isContents || cells.some(({ text }) => leader.test(text))) return true;
  const inOrder = rows.filter(({ pieces }, index) => {
    const above = rows[index - 1];
    return above === undefined || lastDrawn(above) < Math.min(...pieces.map(({ at }) => at));
  });
  if (inOrder.length < MIN_IN_ORDER * rows.length) return true;
  if (grid[0]?.length !== 2) return false;
  const marks = grid.filter(([first, second]) => isLike(first, listMark) || isLike(second, comment));
  if (marks.length * 2 > grid.filter(([first]) => first).length) return true;
  const terms = joinLines(rows, grid).map(([, second = ""]) => second.length);
  return terms.reduce((sum, length) => sum + length, 0) > MAX_PROSE_CELL * terms.length;
}

const isLike = (piece: Piece | undefined, pattern: RegExp) => piece !== undefined && pattern.test(piece.text.trim());
const lastDrawn = ({ pieces }: Row) => Math.max(...pieces.map(({ at }) => at));

/** The texts of the cells. A line close below another one, without a first cell and without numbers, continues its cells. */
function joinLines(rows: readonly Row[], grid: Grid): string[][] {
  const joined: string[][] = [];
  for (const [at, row] of grid.entries()) {
    const [line, above] = [rows[at], rows[at - 1]];
    const isClose = line && above && above.y - line.y <= LINE_DISTANCE * line.size;
    const isRest = row[0] === undefined || (line?.pieces.length === 1 && isCloser(rows, at));
    const open = joined.at(-1);
    if (open && isClose && isRest && row.every((piece) => piece === undefined || !number.test(piece.text))) {
      for (const [column, piece] of row.entries()) {
        if (piece) open[column] = `${open[column] ?? ""} ${piece.text}`.trim();
      }
    } else joined.push(row.map((piece) => piece?.text.replace(/\s+/g, " ").trim() ?? ""));
  }
  return joined;
}

/** Whether a line is closer to the one above than to the one below. */
function isCloser(rows: readonly Row[], at: number): boolean {
  const [above, row, below] = [rows[at - 1], rows[at], rows[at + 1]];
  return !above || !row || !below || above.y - row.y < row.y - below.y - 0.5;
}
