import {
  type DigitPart,
  type DigitRun,
  endsOfForms,
  findParts,
  plainSeparator,
  separatorsOf,
  sizesOf,
  toPart,
} from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
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
/** How the digits of a number under a label may be grouped: undivided, as an SSN is or nearly, in threes, digit by digit. */
const groupings = ["9", "3,2,4", "3,6", "5,4", "3,3,3", "1,1,1,1,1,1,1,1,1"];
/** The groupings that are looked for in a longer run. */
const forms = [[9], [3, 2, 4]];
/** Characters in which the name of another number holds for one that follows. */
const OTHER_NAME_REACH = 24;

/**
 * US social security numbers: 3-2-4 digits. The form alone identifies one when its area, group and serial are possible (never
 * 000, 666 or 900 to 999; 00; 0000: SSA, RM 10201.035). Under a label nine digits count in other forms and behind odder
 * separators too, possible or not: a number that was mistyped or made up is still meant as one, unless the label is denied.
 * Samples such as 123-45-6789 count: they cannot be distinguished from real ones.
 */
export function findSsns(text: GuardText): Span[] {
  const runs = text.digits.runs(9);
  if (runs.length === 0) return [];
  const named = findLabels(text, labels);
  return findParts(
    runs,
    (run) => candidates(text.text, run),
    (part) => isSsn(text, named, part),
  );
}

type Part = DigitPart & {
  sizes: readonly number[];
  separators: readonly string[];
  isWhole: boolean;
  isLoose: boolean;
  /** Whether another separator than its own parts it from the rest of its run. */
  isApart: boolean;
};

/** The run when it has nine digits, else its groups of 3-2-4 or nine. */
function candidates(text: string, { groups, length, isLoose }: DigitRun): Part[] {
  const sizes = sizesOf(groups);
  const toCandidate = (from: number, to: number): Part => {
    const taken = groups.slice(from, to);
    const part = toPart(text, taken);
    const separators = separatorsOf(text, taken);
    const before = text.slice(groups[from - 1]?.end ?? part.start, part.start);
    const after = text.slice(part.end, groups[to]?.start ?? part.end);
    const isApart = ![before, after].some((gap) => separators.includes(plainSeparator(gap)));
    return { ...part, sizes: sizes.slice(from, to), separators, isWhole: length === 9, isLoose, isApart };
  };
  if (length === 9) return [toCandidate(0, groups.length)];
  return sizes.flatMap((_, from) => endsOfForms(sizes, from, forms).map((to) => toCandidate(from, to)));
}

function isSsn(text: GuardText, named: Labels, part: Part): boolean {
  const { digits, sizes, isLoose } = part;
  const isPossible = !/^(?:000|666|...00|.{5}0000)/.test(digits);
  const isFormatted = sizes.join() === "3,2,4";
  if (isPossible && isFormatted && part.isApart && digits < "9" && standsAlone(text, part)) return true;
  const nearness = named.nearness(part);
  if (nearness === undefined || (nearness === "near" && !part.isApart)) return false;
  const isDenied = named.isDenied(part);
  const isDashed = !isLoose && part.isWhole && part.separators.every((one) => one === "-");
  const isAnyForm = nearness === "direct" && isDashed && !isDenied;
  return (isPossible || !isDenied) && (isAnyForm || groupings.includes(sizes.join()));
}

/** Whether the form is enough without a label. Blanks and dots part other numbers too: there nothing may be against it. */
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
