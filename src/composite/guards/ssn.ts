import { type DigitRun, digitsOf, separatorsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import { plainSeparator } from "./separators.ts";
import { lastEndingBefore, type Span } from "./spans.ts";

const labels = labelPattern(
  "s[ ._/-]{0,2}s[ ._/-]{0,2}n\\.?|ssns",
  "soc(?:ial)?\\.?[ _-]{0,2}sec(?:urity)?\\.?",
  "social(?! ?(?:media|network|work|care|worker|distanc|history|event|studies|post|account|determinant|club|graph|app))",
  "s\\.?s\\.? ?(?:#|no\\b|nos\\b|num\\b|number|nr\\b)",
  "i?tin",
  "taxpayer id(?:entification)?",
  "(?:numero )?(?:de|del) segur(?:o|idad|idade) social",
  "seguro social",
  "securite sociale",
  "sozialversicherungsnummer",
);
const singleDigits = 9;
/** Characters in which the name of another number holds for one that follows. */
const OTHER_NAME_REACH = 24;

/**
 * US social security numbers: 3-2-4 digits. The form alone tells one when its area, group and serial are possible (never 000,
 * 666 or 900 to 999; 00; 0000: SSA, RM 10201.035). Under a label nine digits count in other forms and behind odder separators
 * too, possible or not: a number that was mistyped or made up is still meant as one, unless the label is denied. Samples such
 * as 123-45-6789 count: nobody can tell them from real ones.
 */
export function findSsns(text: GuardText): Span[] {
  const [close, loose] = [text.digits.runs(9), text.digits.looseRuns(9)];
  if (close.length + loose.length === 0) return [];
  const named = findLabels(text, labels);
  const found: Span[] = [];
  const add = (run: DigitRun, isLoose: boolean) => {
    const part = candidates(text.text, run).find((part) => isSsn(text, named, { ...part, isLoose }));
    if (part) found.push({ start: part.start, end: part.end });
  };
  for (const run of close) add(run, false);
  for (const run of loose) add(run, true);
  return found;
}

type Part = Span & {
  digits: string;
  sizes: readonly number[];
  separators: readonly string[];
  isWhole: boolean;
  /** Whether another separator than its own parts it from the rest of its run. */
  isApart: boolean;
};

/** The run when it has nine digits, else its groups of 3-2-4 or nine. */
function candidates(text: string, run: DigitRun): Part[] {
  const { groups } = run;
  const sizes = groups.map(({ start, end }) => end - start);
  const parts: Part[] = [];
  const add = (from: number, to: number, isWhole: boolean) => {
    const taken = groups.slice(from, to);
    const [start = 0, end = 0] = [taken[0]?.start, taken.at(-1)?.end];
    const digits = digitsOf(text, taken);
    const separators = separatorsOf(text, taken);
    const outer = [groups[from - 1], groups[to]];
    const outerGaps = [text.slice(outer[0]?.end ?? start, start), text.slice(end, outer[1]?.start ?? end)];
    const isApart = !outerGaps.some((gap) => separators.includes(plainSeparator(gap)));
    parts.push({ start, end, digits, sizes: sizes.slice(from, to), separators, isWhole, isApart });
  };
  if (run.length === 9) add(0, groups.length, true);
  else {
    for (const [index, size] of sizes.entries()) {
      if (size === 9) add(index, index + 1, false);
      else if (size === 3 && sizes[index + 1] === 2 && sizes[index + 2] === 4) add(index, index + 3, false);
    }
  }
  return parts;
}

function isSsn(text: GuardText, named: Labels, part: Part & { isLoose: boolean }): boolean {
  const { digits, sizes, isLoose } = part;
  const isPossible = !/^(?:000|666|...00|.{5}0000)/.test(digits);
  const isFormatted = sizes.join() === "3,2,4";
  if (isPossible && isFormatted && part.isApart && digits < "9" && standsAlone(text, part)) return true;
  const nearness = named.nearness(part);
  if (nearness === undefined || (nearness === "near" && !part.isApart)) return false;
  const isDenied = named.isDenied(part);
  const isDashed = !isLoose && part.isWhole && part.separators.every((one) => one === "-");
  const isAnyForm = nearness === "direct" && isDashed && !isDenied;
  return (isPossible || !isDenied) && (isAnyForm || isPlausibleGrouping(sizes));
}

/** Whether the form tells enough without a label. Blanks and dots part other numbers too: there nothing may speak against it. */
function standsAlone({ text, otherLabels }: GuardText, part: Part): boolean {
  const [separator = "", second] = part.separators.map((one) => one.trim());
  if (!/^[-./_\u00b7\u2022]?$/.test(separator)) return false;
  if (separator !== second || part.separators.some((one) => one.includes("\n") && one.trim() === "")) return false;
  if (/[a-z0-9]/.test(text[part.start - 1] ?? "") || /[a-z]/.test(text[part.end] ?? "")) return false;
  if (separator === "-") return true;
  const other = otherLabels[lastEndingBefore(otherLabels, part.start)];
  const isOtherwiseNamed = other !== undefined && part.start - other.end < OTHER_NAME_REACH;
  return (
    part.isWhole && !isOtherwiseNamed && !/[$\u20ac\u00a3] ?$/.test(text.slice(Math.max(0, part.start - 2), part.start))
  );
}

/** Undivided, divided as an SSN is or nearly, in threes, or digit by digit. */
function isPlausibleGrouping(sizes: readonly number[]): boolean {
  const allowed = ["9", "3,2,4", "3,6", "5,4", "3,3,3"];
  return allowed.includes(sizes.join()) || sizes.length === singleDigits;
}
