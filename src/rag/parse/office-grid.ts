import { type Table, toMarkdownTable } from "./table.ts";

/** A cell of a table, and how many columns and rows it takes. */
export type GridCell = { text: string; columns?: number; rows?: number; isContinued?: boolean };
export type Grid = { rows: readonly (readonly GridCell[])[]; headRows?: number };

const MAX_COLUMNS = 16_384; // of a spreadsheet
const MAX_CELL_CHARACTERS = 4_000; // a cell of more is a part of a page that was laid out by a table
/** Characters that the repeated cells of a document may have besides the number that its own cells have. */
const FREE_REPETITION = 20_000;

/** How far the cells of a document that span rows and columns are repeated still: they could be many times the document. */
export type Repetition = { left: number };
export const makeRepetition = (): Repetition => ({ left: FREE_REPETITION });

/** Whether a table holds data: at least two rows and two columns, and no cell that is as long as a page. */
export function isData({ rows }: Grid): boolean {
  const hasColumns = rows.some((cells) => cells.length > 1);
  return (
    rows.length > 1 &&
    hasColumns &&
    rows.every((cells) => cells.every(({ text }) => text.length <= MAX_CELL_CHARACTERS))
  );
}

/** Writes a table as Markdown. A cell that spans several rows or columns stands in each; the head's rows are one. */
export function writeGrid(grid: Grid, repetition: Repetition): string {
  return toMarkdownTable(fillGrid(grid, repetition));
}

/** Writes a table in a cell: its cells apart by commas, its rows by semicolons. */
export function writeInCell({ rows }: Grid): string {
  const lines = rows.map((cells) => cells.map(({ text }) => text).filter((text) => text !== ""));
  return lines
    .filter((line) => line.length > 0)
    .map((line) => line.join(", "))
    .join("; ");
}

function fillGrid({ rows, headRows = 1 }: Grid, repetition: Repetition): Table {
  let above: { text: string; left: number }[] = []; // by column: a text that later rows have too
  const width = Math.max(1, ...rows.slice(0, headRows).map(widthOf));
  const filled = rows.map((cells, at) => {
    const row: string[] = [];
    const spans: typeof above = [];
    const push = (text: string, left: number, isRepeated: boolean) => {
      if (isRepeated)
        repetition.left -= text.length + 3; // and its borders
      else repetition.left += text.length;
      const isKept = !isRepeated || repetition.left >= 0;
      spans.push({ text, left: isKept ? left : 0 });
      row.push(isKept ? text : "");
    };
    const fill = () => {
      for (let open = above[row.length]; open && open.left > 0; open = above[row.length])
        push(open.text, open.left - 1, true);
    };
    for (const { text, columns = 1, rows: down = 1, isContinued } of cells) {
      if (!isContinued) fill();
      const isWholeRow = at >= headRows && width > 1 && columns >= width; // a title inside the table: once is enough
      const value = isContinued ? (above[row.length]?.text ?? "") : text;
      const count = isWholeRow ? 1 : Math.min(columns, MAX_COLUMNS - row.length);
      push(value, down - 1, isContinued === true);
      for (let n = 1; n < count && repetition.left >= 0; n += 1) push(value, down - 1, true);
    }
    fill();
    above = spans;
    return row;
  });
  return {
    rows: [
      joinHead(filled.slice(0, headRows)),
      ...filled.slice(headRows).filter((row) => row.some((text) => text !== "")),
    ],
  };
}

function widthOf(cells: readonly GridCell[]): number {
  return cells.reduce((sum, { columns = 1 }) => sum + columns, 0);
}

/** One row of the heads of all: a column below several has them all. */
function joinHead(rows: readonly (readonly string[])[]): string[] {
  const [first = []] = rows;
  if (rows.length < 2) return [...first];
  const width = Math.max(0, ...rows.map((row) => row.length));
  return Array.from({ length: width }, (_, column) => {
    const texts = rows.map((row) => row[column] ?? "").filter((text) => text !== "");
    return [...new Set(texts)].join(" ");
  });
}
