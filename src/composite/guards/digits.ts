import type { Span } from "./spans.ts";

/** One or more groups of digits that only small separators part: "4111 1111", "123-45-6789". */
export type DigitRun = Span & {
  groups: readonly Span[];
  /** How many digits it has. */
  length: number;
};

/** The digits of a text. Numbers are kept in flat arrays: a hostile text has half a million groups. */
export type Digits = {
  /** Start and end of each group of digits, in order. */
  starts: Int32Array;
  ends: Int32Array;
  /** The runs of at least `minDigits` digits, six at least: shorter ones are no identifiers by themselves. */
  runs(minDigits: number): Iterable<DigitRun>;
};

/** Groups of one run are parted by one character of these, or by a few of the pattern. */
const singleSeparators = " -./_\n\u00b7\u2022";
const separator = /^(?: {1,2}| ?[-.\u00b7\u2022/_] ?| ?[-.]? ?\r?\n ?)$/;
const MAX_SEPARATOR = 4;
const MIN_DIGITS = 6;
/** Longer runs are tables, not identifiers; they are cut, which keeps every step on a run bounded. */
const MAX_GROUPS = 40;

/** Finds the groups of digits of a folded text and the runs that they form. */
export function findDigits(text: string): Digits {
  const starts = new Int32Array(Math.ceil(text.length / 2) + 1);
  const ends = new Int32Array(starts.length);
  let size = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (!isDigit(text.charCodeAt(at))) continue;
    starts[size] = at;
    while (isDigit(text.charCodeAt(at + 1))) at += 1;
    ends[size] = at + 1;
    size += 1;
  }
  const groups = { starts: starts.subarray(0, size), ends: ends.subarray(0, size) };
  let found: DigitRun[] | undefined;
  return {
    ...groups,
    runs(minDigits) {
      found ??= findRuns(text, groups);
      return found.filter(({ length }) => length >= minDigits);
    },
  };
}

/** The digits of a run or a part of it, without separators. */
export function digitsOf(text: string, groups: readonly Span[]): string {
  return groups.map(({ start, end }) => text.slice(start, end)).join("");
}

/** What lies between the groups; one fewer than groups. */
export function separatorsOf(text: string, groups: readonly Span[]): string[] {
  return groups.slice(1).map((group, index) => text.slice(groups[index]?.end, group.start));
}

function findRuns(text: string, { starts, ends }: Pick<Digits, "starts" | "ends">): DigitRun[] {
  const runs: DigitRun[] = [];
  let first = 0;
  let length = 0;
  for (let index = 0; index < starts.length; index += 1) {
    const [start = 0, end = 0, next] = [starts[index], ends[index], starts[index + 1]];
    length += end - start;
    const goesOn = next !== undefined && index - first < MAX_GROUPS - 1 && isSeparator(text, end, next);
    if (goesOn) continue;
    if (length >= MIN_DIGITS) {
      const groups: Span[] = [];
      for (let at = first; at <= index; at += 1) groups.push({ start: starts[at] ?? 0, end: ends[at] ?? 0 });
      runs.push({ start: starts[first] ?? 0, end, groups, length });
    }
    first = index + 1;
    length = 0;
  }
  return runs;
}

function isSeparator(text: string, start: number, end: number): boolean {
  if (end - start === 1) return singleSeparators.includes(text.charAt(start));
  return end - start <= MAX_SEPARATOR && separator.test(text.slice(start, end));
}

const isDigit = (unit: number) => unit >= 48 && unit <= 57;
