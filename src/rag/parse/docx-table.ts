import type { Block, DocxContext } from "./docx-context.ts";
import { type Grid, type GridCell, isData, writeInCell } from "./office-grid.ts";
import { childOf, elementsOf, settingOf, switchOf, type XmlNode } from "./office-xml.ts";

const MAX_SPAN = 1_000;
const MAX_HEAD_ROWS = 5;
const MAX_SHORT = 400; // characters of a cell in a table of one row that stays a line
const wrappers: ReadonlySet<string> = new Set("w:sdt w:sdtContent w:customXml w:ins w:moveTo w:smartTag".split(" "));

type Cell = Omit<GridCell, "text"> & { blocks: Block[] };
type Row = { cells: Cell[]; isHead: boolean };

/**
 * Reads a table. One of data is a block; one that lays out a page, as by a heading in a cell, is the blocks of its cells. A
 * table in a cell is a list of its rows.
 */
export function readTable(
  table: XmlNode,
  context: DocxContext,
  readBlocks: (node: XmlNode, context: DocxContext) => Block[],
): Block[] {
  const rows = partsOf(table, "w:tr")
    .filter((row) => !isGone(childOf(row, "w:trPr"), ["w:del"]) && !isHidden(row))
    .map((row) => readRow(row, (cell) => elementsOf(cell).flatMap((child) => readBlocks(child, context))));
  const blocks = rows.flatMap(({ cells }) => cells.flatMap((cell) => cell.blocks));
  const found = rows.findIndex(({ isHead }) => !isHead);
  const headRows = Math.min(Math.max(1, found === -1 ? 1 : found), MAX_HEAD_ROWS);
  const grid: Grid = {
    headRows,
    rows: rows.map(({ cells }) => cells.map(({ blocks: own, ...cell }) => ({ ...cell, text: textOf(own) }))),
  };
  if (blocks.some(({ heading }) => heading !== undefined)) return blocks;
  if (isData(grid)) return [{ text: "", table: grid }];
  const [only, ...others] = grid.rows;
  const isLine = only !== undefined && only.length > 1 && others.length === 0 && only.every(isShort);
  return isLine ? [{ text: only.map(({ text }) => text).join(" | ") }] : blocks;
}

const isShort = ({ text }: GridCell) => text.length <= MAX_SHORT;

function readRow(row: XmlNode, read: (cell: XmlNode) => Block[]): Row {
  const properties = childOf(row, "w:trPr");
  const before = spanOf(settingOf(properties, "w:gridBefore") ?? "0");
  const cells: Cell[] = before > 0 ? [{ blocks: [], columns: before }] : [];
  for (const cell of partsOf(row, "w:tc")) {
    const about = childOf(cell, "w:tcPr");
    if (isGone(about, ["w:cellDel"])) continue;
    const columns = Math.max(1, spanOf(settingOf(about, "w:gridSpan") ?? "1"));
    const last = cells.at(-1);
    if (last && isContinuing(about, "w:hMerge")) last.columns = (last.columns ?? 1) + columns;
    else if (isContinuing(about, "w:vMerge")) cells.push({ blocks: [], columns, isContinued: true });
    else cells.push({ blocks: read(cell), columns });
  }
  return { cells, isHead: switchOf(properties, "w:tblHeader") === true };
}

/** A cell that continues the one above, or the one before it. */
function isContinuing(properties: XmlNode | undefined, name: string): boolean {
  const merge = childOf(properties, name);
  return merge !== undefined && merge.attributes["w:val"] !== "restart";
}

function isGone(properties: XmlNode | undefined, names: readonly string[]): boolean {
  return names.some((name) => childOf(properties, name) !== undefined);
}

function isHidden(row: XmlNode): boolean {
  return switchOf(childOf(row, "w:trPr"), "w:hidden") === true;
}

function spanOf(text: string): number {
  const value = Number.parseInt(text, 10);
  return Number.isNaN(value) ? 0 : Math.min(Math.max(0, value), MAX_SPAN);
}

function textOf(blocks: readonly Block[]): string {
  const texts = blocks.map(({ text, table }) => (table ? writeInCell(table) : text));
  return texts.join(" ").replace(/\s+/g, " ").trim();
}

/** The rows or cells of a table, also within what wraps them. */
function partsOf(node: XmlNode, name: string): XmlNode[] {
  return elementsOf(node).flatMap((child) => {
    if (child.name === name) return [child];
    return wrappers.has(child.name) ? partsOf(child, name) : [];
  });
}
