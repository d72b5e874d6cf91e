import { type DigitRun, digitsOf, separatorsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import { lastEndingBefore, type Span } from "./spans.ts";

const labels = labelPattern(
  "ssns?",
  "s\\.s\\.n\\.?",
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
 * 666 or 900 to 999; 00; 0000: SSA, RM 10201.035); nine digits in another form need a label, with which the areas from 900 on
 * (taxpayer numbers, and a well-known sample) count too. Samples such as 123-45-6789 count: nobody can tell them from real ones.
 */
export function findSsns(text: GuardText): Span[] {
  const named = findLabels(text, labels);
  const found: Span[] = [];
  for (const run of text.digits.runs(9)) {
    const part = candidates(text.text, run).find((part) => isSsn(text, named, part));
    if (part) found.push({ start: part.start, end: part.end });
  }
  return found;
}

type Part = Span & { digits: string; sizes: readonly number[]; separators: readonly string[]; isWhole: boolean };

/** The run when it has nine digits, and its groups of 3-2-4 or nine that another separator than their own parts from the rest. */
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
    const outerSeparators = [text.slice(outer[0]?.end ?? start, start), text.slice(end, outer[1]?.start ?? end)];
    if (outerSeparators.some((one) => separators.includes(one))) return;
    parts.push({ start, end, digits, sizes: sizes.slice(from, to), separators, isWhole });
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

function isSsn(text: GuardText, named: Labels, part: Part): boolean {
  const { digits, sizes } = part;
  const area = digits.slice(0, 3);
  if (area === "000" || area === "666" || digits.slice(3, 5) === "00" || digits.slice(5) === "0000") return false;
  const isFormatted = sizes.join() === "3,2,4";
  if (isFormatted && area < "900" && standsAlone(text, part)) return true;
  return isPlausibleGrouping(sizes) && named.nearness(part) !== undefined;
}

/** Whether the form tells enough without a label. Blanks and dots part other numbers too: there nothing may speak against it. */
function standsAlone({ text, otherLabels }: GuardText, part: Part): boolean {
  const [separator = "", second] = part.separators.map((one) => one.trim());
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
