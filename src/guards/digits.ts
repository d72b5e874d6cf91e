import { partingOf, plainSeparator } from "./separators.ts";
import { isBesideOne, type Span } from "./spans.ts";

/** One or more groups of digits that only separators part: "4111 1111", "123-45-6789". */
export type DigitRun = Span & {
  groups: readonly Span[];
  /** How many digits it has. */
  length: number;
  /** Whether odder separators are among them: markup, cells of a table, commas, the word "dash". */
  isLoose: boolean;
};

/** Some groups of a run, taken as one number. */
export type DigitPart = Span & { digits: string };

/** The digits of a text. Numbers are kept in flat arrays: a hostile text has half a million groups. */
export type Digits = {
  /** Start and end of each group of digits, in order. */
  starts: Int32Array;
  ends: Int32Array;
  /** The runs of at least `minDigits` digits, four at least (shorter ones identify nothing); the loose ones come last. */
  runs(minDigits: number): readonly DigitRun[];
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
  let found: DigitRun[] | undefined;
  const runs = (minDigits: number) => {
    found ??= findRuns(text, groups);
    return found.filter(({ length }) => length >= minDigits);
  };
  return { ...groups, runs };
}

/** The groups of digits that one of `labels` is near. */
export function* groupsNear({ starts, ends }: Digits, labels: readonly Span[]): Generator<Span> {
  let following = 0; // the first label that ends behind the begin of a group
  for (let index = 0; index < starts.length; index += 1) {
    const group = { start: starts[index] ?? 0, end: ends[index] ?? 0 };
    while ((labels[following]?.end ?? Number.POSITIVE_INFINITY) <= group.start) following += 1;
    if (isBesideOne(labels[following - 1], labels[following], group)) yield group;
  }
}

/** Groups as one number, without separators. */
export function toPart(text: string, groups: readonly Span[]): DigitPart {
  const digits = groups.map(({ start, end }) => text.slice(start, end)).join("");
  return { start: groups[0]?.start ?? 0, end: groups.at(-1)?.end ?? 0, digits };
}

/** Of each run the first part that a test takes for an identifier. */
export function findParts<P extends Span>(
  runs: readonly DigitRun[],
  partsOf: (run: DigitRun) => readonly P[],
  isIdentifier: (part: P) => boolean,
): Span[] {
  return runs.flatMap((run) => {
    const part = partsOf(run).find(isIdentifier);
    return part ? [{ start: part.start, end: part.end }] : [];
  });
}

/** How many digits each group has. */
export const sizesOf = (groups: readonly Span[]): number[] => groups.map(({ start, end }) => end - start);

/** Where parts end that begin at the group `from`, and whose groups have the sizes of one of `forms`. */
export function endsOfForms(sizes: readonly number[], from: number, forms: readonly (readonly number[])[]): number[] {
  return forms
    .filter((form) => form.every((size, index) => sizes[from + index] === size))
    .map((form) => from + form.length);
}

/** What lies between the groups, without markup; one fewer than groups. */
export function separatorsOf(text: string, groups: readonly Span[]): string[] {
  return groups.slice(1).map((group, index) => plainSeparator(text.slice(groups[index]?.end, group.start)));
}

type Groups = Pick<Digits, "starts" | "ends">;

function findRuns(text: string, { starts, ends }: Groups): DigitRun[] {
  const close: DigitRun[] = [];
  const loose: DigitRun[] = [];
  const add = (runs: DigitRun[], first: number, last: number) => {
    let length = 0;
    for (let at = first; at <= last; at += 1) length += (ends[at] ?? 0) - (starts[at] ?? 0);
    if (length < MIN_DIGITS) return;
    const groups: Span[] = [];
    for (let at = first; at <= last; at += 1) groups.push({ start: starts[at] ?? 0, end: ends[at] ?? 0 });
    runs.push({ start: starts[first] ?? 0, end: ends[last] ?? 0, groups, length, isLoose: runs === loose });
  };
  let [firstClose, firstLoose, isLoose] = [0, 0, false];
  for (let index = 0; index < starts.length; index += 1) {
    const next = starts[index + 1];
    const parting = next === undefined ? undefined : partingOf(text, ends[index] ?? 0, next);
    if (parting !== "close" || index - firstClose >= MAX_GROUPS - 1) {
      add(close, firstClose, index);
      firstClose = index + 1;
    }
    isLoose ||= parting === "loose";
    if (parting === undefined || index - firstLoose >= MAX_GROUPS - 1) {
      if (isLoose) add(loose, firstLoose, index);
      [firstLoose, isLoose] = [index + 1, false];
    }
  }
  return [...close, ...loose];
}

export const isDigit = (unit: number) => unit >= 48 && unit <= 57;
