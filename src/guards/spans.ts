/** A part of a text, in UTF-16 units; `end` is the first unit after it. */
export type Span = { start: number; end: number };

/** Every match of a global pattern; of a pattern that ends with a group, the group alone. */
export function findSpans(text: string, pattern: RegExp): Span[] {
  const spans: Span[] = [];
  for (const match of text.matchAll(pattern)) {
    const end = match.index + match[0].length;
    const start = end - (match[1] ?? match[0]).length;
    if (end > start) spans.push({ start, end });
  }
  return spans;
}

/** Index of the last entry that a test holds for, in a list whose first entries alone it holds for; -1 when there is none. */
export function lastIndexWhile<T>(list: readonly T[], test: (entry: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const entry = list[middle];
    if (entry !== undefined && test(entry)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Index of the last of `spans` (in order, without overlap) that ends at or before `position`; -1 when there is none. */
export const lastEndingBefore = (spans: readonly Span[], position: number): number =>
  lastIndexWhile(spans, ({ end }) => end <= position);

/** No label names a value that is further away, in UTF-16 units. */
const REACH = 80;

/** Whether any of `labels` is near a value at all: a cheap test before the expensive one. */
export function isWithinReach(labels: readonly Span[], { start, end }: Span): boolean {
  const index = lastEndingBefore(labels, start);
  return isBesideOne(labels[index], labels[index + 1], { start, end });
}

/** The same, of the label before a value and the one behind it. */
export function isBesideOne(last: Span | undefined, next: Span | undefined, { start, end }: Span): boolean {
  return (last !== undefined && start - last.end <= REACH) || (next !== undefined && next.start - end <= REACH);
}
