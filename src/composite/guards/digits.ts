import { partingOf, plainSeparator } from "./separators.ts";
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
  /** The runs of at least `minDigits` digits, four at least: shorter ones are no identifiers by themselves. */
  runs(minDigits: number): readonly DigitRun[];
  /** The runs that are held together by odder separators too: markup, cells of a table, commas, the word "dash". */
  looseRuns(minDigits: number): readonly DigitRun[];
};

const MIN_DIGITS = 4;
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
  let found: { close: DigitRun[]; loose: DigitRun[] } | undefined;
  const findOnce = () => {
    found ??= findRuns(text, groups);
    return found;
  };
  const isLong = (minDigits: number) => (run: DigitRun) => run.length >= minDigits;
  return {
    ...groups,
    runs: (minDigits) => findOnce().close.filter(isLong(minDigits)),
    looseRuns: (minDigits) => findOnce().loose.filter(isLong(minDigits)),
  };
}

/** The digits of a run or a part of it, without separators. */
export function digitsOf(text: string, groups: readonly Span[]): string {
  return groups.map(({ start, end }) => text.slice(start, end)).join("");
}

/** What lies between the groups, without markup; one fewer than groups. */
export function separatorsOf(text: string, groups: readonly Span[]): string[] {
  return groups.slice(1).map((group, index) => plainSeparator(text.slice(groups[index]?.end, group.start)));
}

type Groups = Pick<Digits, "starts" | "ends">;

function findRuns(text: string, { starts, ends }: Groups): { close: DigitRun[]; loose: DigitRun[] } {
  const close: DigitRun[] = [];
  const loose: DigitRun[] = [];
  let [firstClose, firstLoose, isLoose] = [0, 0, false];
  for (let index = 0; index < starts.length; index += 1) {
    const next = starts[index + 1];
    const parting = next === undefined ? undefined : partingOf(text, ends[index] ?? 0, next);
    if (parting !== "close" || index - firstClose >= MAX_GROUPS - 1) {
      addRun(close, { starts, ends }, firstClose, index);
      firstClose = index + 1;
    }
    isLoose ||= parting === "loose";
    if (parting === undefined || index - firstLoose >= MAX_GROUPS - 1) {
      if (isLoose) addRun(loose, { starts, ends }, firstLoose, index);
      [firstLoose, isLoose] = [index + 1, false];
    }
  }
  return { close, loose };
}

function addRun(runs: DigitRun[], { starts, ends }: Groups, first: number, last: number): void {
  let length = 0;
  for (let at = first; at <= last; at += 1) length += (ends[at] ?? 0) - (starts[at] ?? 0);
  if (length < MIN_DIGITS) return;
  const groups: Span[] = [];
  for (let at = first; at <= last; at += 1) groups.push({ start: starts[at] ?? 0, end: ends[at] ?? 0 });
  runs.push({ start: starts[first] ?? 0, end: ends[last] ?? 0, groups, length });
}

const isDigit = (unit: number) => unit >= 48 && unit <= 57;
