/** A line of a table has at most this many characters; a longer one is prose. */
const MAX_ROW = 20_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const DELIMITER = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/; // of a line without blanks around: takes linear time
const SOME_DELIMITER = /^ {0,3}[|:-][ \t|:-]*$/m;

/** A part of a text: prose, or a Markdown table's head (its first row and the line below) and rows. */
export type Block = { prose: string } | { head: string; rows: string[] };

/** Cuts a text at its Markdown tables, except in code fences. Blanks that pad cells are left out. */
export function blocksOf(text: string): Block[] {
  if (!text.includes("|") || !SOME_DELIMITER.test(text)) return [{ prose: text }];
  const blocks: Block[] = [];
  let prose: string[] = [];
  let rows: string[] | undefined;
  let fence: string | undefined;
  const endProse = () => {
    if (prose.length > 0) blocks.push({ prose: prose.join("\n") });
    prose = [];
  };
  for (const line of text.split("\n")) {
    if (rows && isRow(line)) {
      rows.push(compact(line));
      continue;
    }
    rows = undefined;
    const mark = FENCE.exec(line)?.[1];
    if (mark !== undefined) fence = fence === undefined ? mark : mark.startsWith(fence) ? undefined : fence;
    const above = prose.at(-1);
    if (fence === undefined && above !== undefined && isHead(above, line)) {
      prose.pop();
      endProse();
      rows = [];
      blocks.push({ head: `${compact(above)}\n${compact(line).replace(/-{3,}/g, "---")}`, rows });
    } else prose.push(line);
  }
  endProse();
  return blocks;
}

/** The texts of a row's cells. */
export function cellsOf(row: string): string[] {
  const inner = row
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function isRow(line: string): boolean {
  return line.length <= MAX_ROW && line.includes("|") && line.trim() !== "";
}

function isHead(row: string, delimiter: string): boolean {
  if (!isRow(row) || !isRow(delimiter) || !DELIMITER.test(delimiter.trim())) return false;
  return cellsOf(row).length === cellsOf(delimiter).length;
}

function compact(line: string): string {
  return line.trim().replace(/[ \t]{2,}/g, " ");
}
