/** A part of a text, in UTF-16 units; `end` is the first unit after it. */
export type Span = { start: number; end: number };

/** Every match of a global pattern. */
export function findSpans(text: string, pattern: RegExp): Span[] {
  const spans: Span[] = [];
  for (const match of text.matchAll(pattern)) {
    if (match[0].length > 0) spans.push({ start: match.index, end: match.index + match[0].length });
  }
  return spans;
}

/** Index of the last of `spans` (in order, without overlap) that ends at or before `position`; -1 when there is none. */
export function lastEndingBefore(spans: readonly Span[], position: number): number {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.end ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Further off than this no label names a value, in UTF-16 units. */
const REACH = 80;

/** Whether any of `labels` is near a value at all: a cheap look before a dear one. */
export function isWithinReach(labels: readonly Span[], { start, end }: Span): boolean {
  const index = lastEndingBefore(labels, start);
  const last = labels[index];
  const next = labels[index + 1];
  return (last !== undefined && start - last.end <= REACH) || (next !== undefined && next.start - end <= REACH);
}
