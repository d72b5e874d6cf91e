import { CsvError, parse } from "csv-parse/sync";
import { firstLineOf, type ParsedDocument, tidy, unreadable } from "./section.ts";
import { toMarkdownTable } from "./table.ts";

const DELIMITERS = [",", ";", "\t", "|"];
const SAMPLE_CHARACTERS = 64 << 10;
const SAMPLE_ROWS = 200;
const MAX_CELLS = 5_000_000;
const MAX_COLUMNS = 16_384; // of a spreadsheet
/** A hint to spreadsheets in the first line, which is no row. */
const HINT = /^\uFEFF?sep=(.)\r?(?:\n|$)/i;

type Reading = { delimiter: string; isQuoted: boolean };

/**
 * Reads texts in columns, whose first row names them. Commas, semicolons, tabs and bars are told apart by which of them gives
 * most rows the same number of cells. Its title is the name of its file. @throws AppError `source_unreadable`
 */
export function parseCsv(source: string, name = ""): ParsedDocument {
  const hint = HINT.exec(source);
  const text = source.slice(hint?.[0].length ?? 0).replace(/^\uFEFF/, "");
  const delimiter = hint?.[1] ?? findDelimiter(text);
  const rows = rowsOf(text, delimiter);
  const found = rows.findIndex((row) => row.filter((cell) => cell !== "").length > 1);
  const from = found === -1 ? rows.length : found; // lines of one cell above a table are text
  const lines = rows.slice(0, from).map((row) => row.join(""));
  const table = from < rows.length ? [toMarkdownTable({ rows: rows.slice(from) })] : [];
  const body = tidy([lines.join("\n"), ...table].join("\n\n"));
  const title = nameOf(name) ?? firstLineOf(rows[0]?.join(" ") ?? "");
  return { type: "csv", sections: [{ text: body }], ...(title ? { title } : {}) };
}

/** A file's name without its folder and its ending. */
export function nameOf(path: string): string | undefined {
  const name = path
    .split(/[/\\]/)
    .at(-1)
    ?.replace(/\.\w{1,5}$/, "")
    .trim();
  return name ? name : undefined;
}

/** Rows that hold something. Where quotes are not in pairs, they are taken for text: so a row is at most a line. */
function rowsOf(text: string, delimiter: string): string[][] {
  try {
    return read(text, { delimiter, isQuoted: true });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return read(text, { delimiter, isQuoted: false });
  }
}

function read(text: string, { delimiter, isQuoted }: Reading, most?: number): string[][] {
  let cells = 0;
  const rows: string[][] = [];
  parse(text, {
    delimiter,
    quote: isQuoted ? '"' : false,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    ...(most === undefined ? {} : { to: most }),
    on_record: (record: string[]) => {
      cells += record.length;
      if (cells > MAX_CELLS || record.length > MAX_COLUMNS) throw unreadable("Its table is too large.");
      if (record.some((cell) => cell.trim() !== "")) rows.push(record.map(onOneLine));
      return null;
    },
  });
  return rows;
}

/** Most characters of a cell that is written are its own, blanks of several lines apart. */
function onOneLine(cell: string): string {
  return cell.replace(/\s+/g, " ").trim();
}

function findDelimiter(text: string): string {
  const cut = text.length > SAMPLE_CHARACTERS ? text.lastIndexOf("\n", SAMPLE_CHARACTERS) : -1;
  const sample = text.slice(0, cut > 0 ? cut : SAMPLE_CHARACTERS);
  const scores = DELIMITERS.map((delimiter) => ({ delimiter, score: scoreOf(sample, delimiter) }));
  return scores.reduce((best, one) => (one.score > best.score ? one : best)).delimiter;
}

/** How many rows have the number of cells that most rows have, if that is more than one; of two, more cells are better. */
function scoreOf(sample: string, delimiter: string): number {
  const widths = new Map<number, number>();
  const rows = sampleOf(sample, delimiter);
  for (const { length } of rows) widths.set(length, (widths.get(length) ?? 0) + 1);
  widths.delete(1);
  const best = Math.max(0, ...widths.values());
  const width = Math.max(0, ...[...widths].filter(([, count]) => count === best).map(([value]) => value));
  return rows.length === 0 ? 0 : best / rows.length + width / (10 * MAX_COLUMNS);
}

function sampleOf(sample: string, delimiter: string): string[][] {
  for (const isQuoted of [true, false]) {
    try {
      return read(sample, { delimiter, isQuoted }, SAMPLE_ROWS);
    } catch (error) {
      if (!(error instanceof CsvError)) throw error;
    }
  }
  return [];
}
