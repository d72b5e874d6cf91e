import type { Line } from "./pdf-line.ts";

/** A footnote's letters are smaller than the text's by this factor at least. */
const SMALLER = 0.95;
const mark = /^(?:\^?\d{1,3}(?=[^\d.,])|\^?[a-z](?=\s)|\^[a-z]|[*†‡§¶]+)\s*\S/u;

/**
 * Moves footnotes to the end of their page where the text goes on after them, at the top of the next column: they would stand
 * inside a sentence.
 */
export function footnotesLast(lines: readonly Line[], bodySize: number): readonly Line[] {
  const kept: Line[] = [];
  const notes: Line[] = [];
  const isSmall = ({ size, isTable }: Line) => !isTable && size > 0 && size <= SMALLER * bodySize;
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (!line) break;
    const end = isSmall(line) && mark.test(line.text) ? endOfNotes(lines, at, isSmall) : at;
    const next = lines.slice(end).find(({ size }) => size > 0);
    if (end > at && next && next.y > line.y && !isSmall(next)) {
      notes.push(...lines.slice(at, end));
      at = end;
    } else {
      kept.push(line);
      at += 1;
    }
  }
  return notes.length > 0 ? [...kept, ...notes] : lines;
}

/** The first line after the notes that begin at `from`: each further line of theirs is small, too, and stands lower. */
function endOfNotes(lines: readonly Line[], from: number, isSmall: (line: Line) => boolean): number {
  let end = from + 1;
  let lowest = lines[from]?.y ?? 0;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    if (!line || line.text === "") continue;
    if (!isSmall(line) || line.y > lowest) break;
    lowest = line.y;
  }
  return end;
}
