import type { Line } from "./pdf-line.ts";

/** `5.9.4 Orphaning a package`, but not the entry of a table of contents, which ends with its page. */
export const numberedLine = /^(\d+(?:\.\d+)+)\.?\s+\p{Lu}.*[^\d\s.]$/u;
/** `4 Method`, `IV. METHOD`: many a line begins like this. */
const oneLevel = /^(?:(\d{1,2})|([IVX]{1,5}))(?:\.|\))?\s+\p{Lu}.*[^\d\s.,;:]$/u;
/** So many headings in a row make one-level numbers headings. */
const IN_A_ROW = 3;
const MAX_CHARACTERS = 120;
const roman = { I: 1, V: 5, X: 10 } as const;

/**
 * The lines that are headings by a number of one level: at least three that rise by one, in one font that is not the text's.
 * Numbered steps in the text's font are none.
 */
export function findNumberedLines(pages: readonly (readonly Line[])[], bodyFont: string): ReadonlySet<Line> {
  const open = new Map<string, { lines: Line[]; number: number }[]>();
  for (const line of pages.flat()) {
    const number = line.isTable || line.size === 0 || line.font === bodyFont ? undefined : numberOf(line.text.trim());
    if (number === undefined) continue;
    const key = `${line.font} ${/^\d/.test(line.text.trim())}`;
    const rows = open.get(key) ?? [];
    const row = rows.findLast((each) => each.number === number - 1);
    if (row) Object.assign(row, { number }).lines.push(line);
    else rows.push({ lines: [line], number });
    open.set(key, rows);
  }
  const rows = [...open.values()].flat().filter(({ lines }) => lines.length >= IN_A_ROW);
  return new Set(rows.flatMap(({ lines }) => lines));
}

function numberOf(text: string): number | undefined {
  const [, digits, letters] = (text.length <= MAX_CHARACTERS && oneLevel.exec(text)) || [];
  if (digits !== undefined) return Number(digits);
  if (letters === undefined) return undefined;
  const values = [...letters].map((letter) => roman[letter as keyof typeof roman]);
  return values.reduce((sum, value, at) => sum + (value < (values[at + 1] ?? 0) ? -value : value), 0);
}
