/** A table as it was read: texts by row and column, those of the head in the first row. Later rows may be shorter. */
export type Table = { caption?: string; rows: readonly (readonly string[])[] };

/** Writes a table in Markdown. Columns that are empty throughout are left out; a row of one cell keeps its place. */
export function toMarkdownTable({ caption = "", rows }: Table): string {
  const kept = filledColumns(rows);
  const [head = [], ...body] = rows;
  const lines = [
    toRow(kept.map((column) => head[column] ?? "")),
    `|${"---|".repeat(kept.length)}`,
    ...body.map((row) => toRow(withoutEmptyEnd(kept.map((column) => row[column] ?? "")))),
  ];
  return [...(caption === "" ? [] : [caption, ""]), ...lines].join("\n");
}

function filledColumns(rows: Table["rows"]): number[] {
  const filled: boolean[] = [];
  for (const row of rows) {
    for (const [column, text] of row.entries()) filled[column] = filled[column] === true || text !== "";
  }
  return [...filled.keys()].filter((column) => filled[column] === true);
}

function withoutEmptyEnd(cells: string[]): string[] {
  return cells.slice(0, 1 + cells.findLastIndex((text) => text !== ""));
}

function toRow(cells: readonly string[]): string {
  return `| ${cells.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`;
}
