import { isBesideOne, type Span } from "./spans.ts";

/** How two groups of digits may be parted: as one number's usually are, or only where a label or a checksum speaks for one. */
type Parting = "close" | "loose";

/** One character of these, or a few of the pattern, part the groups of one number. */
const single = " -./_\n\u00b7\u2022";
const close = /^(?: {1,2}| ?[-.\u00b7\u2022/_] ?| ?[-.]? ?\r?\n ?)$/;
const MAX_CLOSE = 4;
/** The longest gap that is looked at, with markup, and what may be left of it without. */
const MAX_GAP = 64;
const MAX_LOOSE = 4;
const tag = /<\/?[a-z][^<>]{0,40}>/g;
/** Tags that mark a part of a line, rather than a cell or a line. */
const inlineTag =
  /<\/?(?:a|b|i|u|s|em|strong|span|font|code|mark|small|big|tt|kbd|var|sub|sup|wbr|bdi|nobr)(?![a-z])[^<>]{0,40}>/g;
const letterOrNumber = /[\p{L}\p{N}]/u;
const emphasis = /\*{1,3}|_{1,3}|~~|`+/g;
const spoken = /^[ -]?(?:dash|hyphen|minus|tiret|dot|point|period|slash|space|blank)[ -]?$/;
const dashSpoken = /dash|hyphen|minus|tiret/;

/** How the text from `start` to `end` parts the digits on either side; undefined when they are two numbers. */
function partingOf(text: string, start: number, end: number): Parting | undefined {
  const length = end - start;
  if (length === 1 && single.includes(text.charAt(start))) return "close";
  if (length > MAX_GAP) return undefined;
  const gap = text.slice(start, end);
  if (length <= MAX_CLOSE && close.test(gap)) return "close";
  const rest = (gap.includes("<") ? gap.replace(tag, "") : gap).replace(emphasis, "");
  return (rest.length <= MAX_LOOSE && !letterOrNumber.test(rest)) || spoken.test(rest) ? "loose" : undefined;
}

/** What a separator is without the markup around it: `**-**` and ` dash ` are a dash, three blanks are one. */
export function plainSeparator(gap: string): string {
  if (gap.length === 1 || close.test(gap)) return gap;
  const untagged = gap.replace(inlineTag, "").replace(tag, "|");
  const plain = untagged.replace(emphasis, "") || untagged;
  if (spoken.test(plain)) return dashSpoken.test(plain) ? "-" : " ";
  return plain.replace(/ {2,}/g, " ").replace(/-{2,}/g, "-");
}

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
