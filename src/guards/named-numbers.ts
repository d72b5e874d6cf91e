import { type DigitPart, type DigitRun, findParts } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels } from "./labels.ts";
import type { Span } from "./spans.ts";

/** How labels of one kind name a number: which digits it may have right after one, and which near one (default: none). */
export type NumberRule = {
  labels: RegExp;
  isDirect(digits: string): boolean;
  isNear?(digits: string): boolean;
};

type Search = {
  rules: readonly NumberRule[];
  /** The numbers that a run may hold, the likeliest first. */
  partsOf(run: DigitRun): readonly DigitPart[];
  /** Words that break the bond of a label with a number; default: the names of other numbers. */
  others?(): readonly Span[];
};

/** The numbers that have no form of their own, so that labels name them: of each run the first that a rule takes. */
export function findNamedNumbers(
  text: GuardText,
  runs: readonly DigitRun[],
  { rules, partsOf, others = () => text.otherLabels }: Search,
): Span[] {
  if (runs.length === 0) return [];
  const named = rules.map((rule) => ({ rule, labels: findLabels(text, rule.labels) }));
  if (named.every(({ labels }) => labels.spans.length === 0)) return [];
  const breaking = others();
  const isNamed = (part: DigitPart) =>
    named.some(({ rule, labels }) => {
      const isDirect = rule.isDirect(part.digits);
      const isNear = rule.isNear?.(part.digits) ?? false;
      const nearness = isDirect || isNear ? labels.nearness(part, breaking) : undefined;
      return (nearness === "direct" && isDirect) || (nearness === "near" && isNear);
    });
  return findParts(runs, partsOf, isNamed);
}
