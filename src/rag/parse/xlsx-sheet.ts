import type { LeftOut } from "./office-left-out.ts";
import type { OfficePackage } from "./office-package.ts";
import { childOf, elementsOf, readXml, textIn, type XmlNode } from "./office-xml.ts";
import { unreadable } from "./section.ts";
import type { CellFormat } from "./xlsx-format.ts";
import { readRichText } from "./xlsx-strings.ts";

const MAX_CELLS = 1_500_000; // of a workbook, those that hold something
const MAX_CHARACTERS = 80_000_000; // of a workbook; no document of more is indexed
const MAX_MERGES = 100_000;
const MAX_COLUMN = 16_384;
const MAX_ROW = 1_048_576;

/** What is known of a workbook while its sheets are read. */
export type SheetContext = {
  strings: readonly string[];
  formats: (style: string) => CellFormat;
  leftOut: LeftOut;
  spent: { cells: number; characters: number };
};

/** A cell that holds something; columns count from 0. */
export type SheetCell = { column: number; text: string; isText: boolean };
/** A row that holds something. `isApart`: an empty row that is shown stands above it. */
export type SheetRow = { index: number; cells: SheetCell[]; isApart: boolean };
/** Cells that are shown as one, with the first and the last row and column. */
export type Merge = { top: number; bottom: number; left: number; right: number };
export type Sheet = { rows: SheetRow[]; merges: Merge[] };

/** Reads the cells of a sheet that are shown, whatever size the sheet says that it has. */
export async function readSheet(file: OfficePackage, part: string, context: SheetContext): Promise<Sheet> {
  const rows: SheetRow[] = [];
  const merges: Merge[] = [];
  const hidden = new Set<number>(); // columns
  let before = 0; // the last row that was read, from 1
  await readXml(file.read(part), new Set(["x:worksheet", "x:sheetData"]), (unit) => {
    if (unit.name === "x:cols") hideColumns(unit, hidden, context.leftOut);
    if (unit.name === "x:mergeCells") merges.push(...mergesOf(unit));
    if (unit.name !== "x:row") return;
    const index = numberOf(unit.attributes.r, MAX_ROW) ?? before + 1;
    if (isOn(unit.attributes.hidden)) {
      if (elementsOf(unit).some((cell) => childOf(cell, "x:v") !== undefined)) context.leftOut.add("hiddenRow");
      if (before === index - 1) before = index;
      return;
    }
    const cells = readCells(unit, context, hidden);
    if (cells.length === 0) return;
    rows.push({ index, cells, isApart: index > before + 1 });
    before = index;
  });
  return { rows, merges };
}

function readCells(row: XmlNode, context: SheetContext, hidden: ReadonlySet<number>): SheetCell[] {
  const { spent } = context;
  const cells: SheetCell[] = [];
  let column = -1;
  for (const cell of elementsOf(row)) {
    if (cell.name !== "x:c") continue;
    column = columnOf(cell.attributes.r) ?? column + 1;
    const { text, isText } = readCell(cell, context);
    if (text === "" || column >= MAX_COLUMN || hidden.has(column)) continue;
    spent.cells += 1;
    spent.characters += text.length;
    if (spent.cells > MAX_CELLS || spent.characters > MAX_CHARACTERS) throw unreadable("Its sheets hold too much.");
    cells.push({ column, text, isText });
  }
  return cells.slice(); // an array that grew has room for many more
}

function readCell(cell: XmlNode, { strings, formats, leftOut }: SheetContext): { text: string; isText: boolean } {
  const { t: type = "n", s: style = "0" } = cell.attributes;
  const { write, isStruck } = formats(style);
  const marked = (text: string) => (isStruck && text !== "" ? `~~${text}~~` : text);
  const asText = (text: string) => ({ text: marked(text.replace(/\s+/g, " ").trim()), isText: true });
  if (type === "inlineStr") return asText(readRichText(childOf(cell, "x:is") ?? cell));
  const stored = childOf(cell, "x:v");
  if (!stored) {
    if (childOf(cell, "x:f")) leftOut.add("formula");
    return { text: "", isText: true };
  }
  const value = textIn(stored);
  if (type === "s") return asText(strings[Number(value)] ?? "");
  if (type === "b") return asText(value === "1" ? "TRUE" : "FALSE");
  if (type !== "n") return type === "d" ? { text: marked(value.replace("T", " ")), isText: false } : asText(value);
  const number = Number(value);
  if (value.trim() === "" || Number.isNaN(number)) return asText(value);
  return { text: marked(write(number)), isText: false };
}

function hideColumns(columns: XmlNode, hidden: Set<number>, leftOut: LeftOut): void {
  for (const { attributes } of elementsOf(columns).slice(0, MAX_COLUMN)) {
    const [left, right] = [numberOf(attributes.min, MAX_COLUMN), numberOf(attributes.max, MAX_COLUMN)];
    if (!isOn(attributes.hidden) || left === undefined || right === undefined) continue;
    leftOut.add("hiddenColumn");
    for (let column = left - 1; column < right; column += 1) hidden.add(column);
  }
}

function mergesOf(node: XmlNode): Merge[] {
  return elementsOf(node)
    .slice(0, MAX_MERGES)
    .flatMap(({ attributes }) => {
      const [from, to] = (attributes.ref ?? "").split(":");
      const [left, right, top, bottom] = [columnOf(from), columnOf(to), rowOf(from), rowOf(to)];
      if (left === undefined || right === undefined || top === undefined || bottom === undefined) return [];
      return [{ left, right, top, bottom }];
    });
}

/** The column of a place such as `AB12`, from 0. */
function columnOf(place: string | undefined): number | undefined {
  const letters = /^\$?([A-Za-z]{1,3})/.exec(place ?? "")?.[1]?.toUpperCase();
  if (!letters) return undefined;
  let column = 0;
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64;
  return column - 1;
}

function rowOf(place: string | undefined): number | undefined {
  return numberOf(/(\d{1,7})$/.exec(place ?? "")?.[1], MAX_ROW);
}

function numberOf(text: string | undefined, most: number): number | undefined {
  const value = Number.parseInt(text ?? "", 10);
  return value >= 1 && value <= most ? value : undefined;
}

function isOn(value: string | undefined): boolean {
  return value === "1" || value === "true";
}
