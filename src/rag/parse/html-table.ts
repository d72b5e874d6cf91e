import { type DomNode, ELEMENT, TEXT } from "./dom-node.ts";
import { closeStruck, inlineText, isStruck, strike } from "./html-inline.ts";
import type { Table } from "./table.ts";

const MAX_COLUMNS = 200; // a wider table is read as text
const MAX_ROWS_SPANNED = 65_534; // of HTML's own
const MAX_HEAD_ROWS = 5;
const MAX_CELL_CHARACTERS = 4_000; // a cell of more is a part of a page that was laid out by a table
const MAX_DEPTH = 100;
/** Characters that the repeated cells of a document may have besides the number that its own cells have. */
const FREE_REPETITION = 20_000;

const around = new Set(["THEAD", "TBODY", "TFOOT"]);
const unread = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "COLGROUP", "COL"]);
const headings = new Set("H1 H2 H3 H4 H5 H6".split(" "));
const headingsAndTables = new Set([...headings, "TABLE"]);
const inlineNames = new Set([
  ..."A ABBR ACRONYM B BDI BDO BIG CITE CODE DATA DEL DFN EM FONT I INS KBD LABEL MARK NOBR OUTPUT Q RB RP RT RUBY".split(
    " ",
  ),
  ..."S SAMP SMALL SPAN STRIKE STRONG SUB SUP TIME TT U VAR WBR".split(" "),
]);

/** How far the cells of a document that span rows and columns are repeated still: they could be many times the document. */
export type Repetition = { left: number };
export const makeRepetition = (): Repetition => ({ left: FREE_REPETITION });

type Row = { cells: DomNode[]; isHead: boolean };

/**
 * Reads a table of data: at least two rows and two columns, and cells that hold no heading. The head's rows are one row; a
 * cell that spans several stands in each. Returns undefined for any other table: a layout, or a list.
 */
export function readTable(table: DomNode, repetition: Repetition): Table | undefined {
  const rows = rowsOf(table);
  if (!rows || rows.length < 2 || !rows.some(({ cells }) => cells.length > 1)) return undefined;
  if (rows.some(({ cells }) => cells.length > MAX_COLUMNS)) return undefined;
  const hasHeads = rows.some(({ cells }) => cells.some(isHeadCell));
  const foreign = hasHeads ? headings : headingsAndTables;
  if (rows.some(({ cells }) => cells.some((cell) => holdsAny(cell, foreign)))) return undefined;
  const headRows = countHeadRows(rows);
  const filled = fillGrid(rows, headRows, repetition);
  if (filled.some((row) => row.some((text) => text.length > MAX_CELL_CHARACTERS))) return undefined;
  const caption = [...table.childNodes].find((node) => node.nodeName.toUpperCase() === "CAPTION");
  const body = filled.slice(headRows).filter((row) => row.length > 0);
  return { ...(caption ? { caption: textOf(caption) } : {}), rows: [joinHead(filled.slice(0, headRows)), ...body] };
}

/** The rows of a table; undefined where it holds text outside its cells. */
function rowsOf(table: DomNode): Row[] | undefined {
  const rows: Row[] = [];
  const read = (parent: DomNode, isHead: boolean): boolean => {
    for (const node of parent.childNodes) {
      const name = node.nodeName.toUpperCase();
      if (name === "TR") {
        const cells = cellsOf(node);
        if (cells === undefined) return false;
        rows.push({ cells, isHead });
      } else if (around.has(name) && parent === table) {
        if (!read(node, name === "THEAD")) return false;
      } else if (name !== "CAPTION" && !isUnread(node)) return false;
    }
    return true;
  };
  return read(table, false) ? rows : undefined;
}

function cellsOf(row: DomNode): DomNode[] | undefined {
  const cells: DomNode[] = [];
  for (const node of row.childNodes) {
    const name = node.nodeName.toUpperCase();
    if (name === "TD" || name === "TH") cells.push(node);
    else if (!isUnread(node)) return undefined;
  }
  return cells;
}

const isHeadCell = (cell: DomNode) => cell.nodeName.toUpperCase() === "TH";

/** Whether a node holds nothing that is read. */
function isUnread(node: DomNode): boolean {
  if (node.nodeType === ELEMENT) return unread.has(node.nodeName.toUpperCase());
  return node.nodeType !== TEXT || (node.textContent ?? "").trim() === "";
}

/** Whether an element of one of these names stands below a node, or very deep markup. It ends at the first. */
export function holdsAny(root: DomNode, names: ReadonlySet<string>): boolean {
  const open = [root.childNodes[Symbol.iterator]()];
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const { done, value: node } = last.next();
    if (done) open.pop();
    else if (node.nodeType === ELEMENT) {
      if (open.length > MAX_DEPTH || names.has(node.nodeName.toUpperCase())) return true;
      open.push(node.childNodes[Symbol.iterator]());
    }
  }
  return false;
}

/**
 * The first rows that are all heads, and at least one, which Markdown has to have. None where only the first column has heads:
 * then each row stands for itself.
 */
function countHeadRows(rows: readonly Row[]): number {
  const isHeadRow = ({ cells, isHead }: Row) => isHead || (cells.length > 0 && cells.every(isHeadCell));
  const found = rows.findIndex((row) => !isHeadRow(row));
  const count = Math.min(found === -1 ? 1 : found, MAX_HEAD_ROWS);
  const [first] = rows[0]?.cells ?? [];
  return count === 0 && first !== undefined && isHeadCell(first) ? 0 : Math.max(1, count);
}

/** One row of the heads of all: a column below several has them all. */
function joinHead(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(0, ...rows.map((row) => row.length));
  return Array.from({ length: width }, (_, column) => {
    const texts = rows.map((row) => row[column] ?? "").filter((text) => text !== "");
    return [...new Set(texts)].join(" ");
  });
}

/** A cell that spans rows: what later rows have in its column, up to row `until`. */
type Spanned = { text: string; until: number };

/** The texts of all rows, each in its column; a cell that spans several columns or rows is repeated. */
function fillGrid(rows: readonly Row[], headRows: number, repetition: Repetition): string[][] {
  let open: (Spanned | undefined)[] = [];
  let width = 0;
  const repeat = (row: string[], text: string): boolean => {
    if (repetition.left < text.length) return false;
    repetition.left -= text.length + 3; // and its borders
    row.push(text);
    return true;
  };
  const stillOpen = (column: number, at: number) => ((open[column]?.until ?? -1) >= at ? open[column] : undefined);
  return rows.map(({ cells }, at) => {
    const row: string[] = [];
    if (cells.length === 0) return row;
    const fillSpanned = () => {
      for (let above = stillOpen(row.length, at); above; above = stillOpen(row.length, at)) {
        if (!repeat(row, above.text)) open = [];
      }
    };
    for (const cell of cells) {
      fillSpanned();
      const text = textOf(cell);
      repetition.left += text.length;
      const columns = Math.min(spanOf(cell, "colspan"), MAX_COLUMNS - row.length);
      const isWholeRow = at >= headRows && width > 1 && columns >= width; // a title inside the table: once is enough
      const until = at + spanOf(cell, "rowspan") - 1;
      const from = row.length;
      row.push(text);
      while (!isWholeRow && row.length < from + columns && repeat(row, text));
      if (until > at) for (let column = from; column < row.length; column += 1) open[column] = { text, until };
    }
    while (open.length > row.length && stillOpen(open.length - 1, at) === undefined) open.length -= 1;
    while (row.length < open.length) if (!repeat(row, stillOpen(row.length, at)?.text ?? "")) open = [];
    if (at === 0) width = row.length;
    return row;
  });
}

function spanOf(cell: DomNode, name: "colspan" | "rowspan"): number {
  const value = Number.parseInt(cell.getAttribute?.(name) ?? "", 10);
  if (name === "rowspan" && value === 0) return MAX_ROWS_SPANNED; // to the table's end
  return Number.isNaN(value) ? 1 : Math.min(Math.max(1, value), MAX_ROWS_SPANNED);
}

/**
 * The text below a node on one line, with a blank where a line or a block ends. A table in it becomes a list. `isStruckOut`: it
 * stands in a part that is struck out.
 */
export function textOf(root: DomNode, isStruckOut = false): string {
  const parts: string[] = [];
  let hasTable = false;
  let struck = isStruckOut ? 1 : 0;
  const write = (text: string) => void (text !== "" && parts.push(struck > 0 ? strike(text) : text));
  const visit = (node: DomNode, depth: number): void => {
    if (node.nodeType === TEXT || depth > MAX_DEPTH) return void write(node.textContent ?? "");
    const name = node.nodeName.toUpperCase();
    if (node.nodeType !== ELEMENT || unread.has(name)) return;
    const inline = inlineText(node, name, parts.at(-1)?.at(-1) ?? "");
    if (inline !== undefined) return void write(inline);
    if (isStruck(name)) struck += 1;
    for (const child of node.childNodes) visit(child, depth + 1);
    if (isStruck(name)) struck -= 1;
    if (depth === 0) return;
    hasTable ||= name === "TABLE";
    parts.push(endings.get(name) ?? (inlineNames.has(name) ? "" : " "));
  };
  visit(root, 0);
  const text = closeStruck(parts.join("").replace(/\s+/g, " ")).trim();
  return hasTable ? text.replace(/,? ?([,;]) /g, "$1 ").replace(/[,; ]+$/, "") : text;
}

/** What stands for the end of a nested table's cell or row. */
const endings = new Map([
  ["TD", ", "],
  ["TH", ", "],
  ["TR", "; "],
]);
