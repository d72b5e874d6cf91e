import { hasAbaChecksum } from "./checksums.ts";
import { digitsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import type { Span } from "./spans.ts";

const numberWord = "(?:number|no|num|code|#)";
const abaLabels = labelPattern(
  `(?:aba|ach|wire|bank)?[ _-]{0,2}routing(?: ?(?:and|&|/) ?transit)?[ _-]?${numberWord}`,
  "rtn",
  "aba",
  `transit(?: routing)? ?${numberWord}`,
);
/** A word of networks too: near it the checksum decides. */
const loneLabels = labelPattern("(?:aba|ach|wire|bank)?[ _-]{0,2}routing");
const sortCodeLabels = labelPattern("sort ?-?codes?", "bankleitzahl|blz", "bsb");
/** First two digits that the American Bankers Association gives out: Federal Reserve, thrifts, electronic, cheques. */
const abaPrefix = /^(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)/;

/**
 * Numbers that name a bank in a payment: US routing numbers, nine digits that a label names (near the bare word "routing" one in
 * ten that the checksum allows), and British and other sort codes, by label and form.
 */
export function findRoutingNumbers(text: GuardText): Span[] {
  const runs = [...text.digits.runs(6), ...text.digits.looseRuns(6)];
  if (runs.length === 0) return [];
  const naming = {
    aba: findLabels(text, abaLabels),
    lone: findLabels(text, loneLabels),
    sortCode: findLabels(text, sortCodeLabels),
  };
  if (Object.values(naming).every(({ spans }) => spans.length === 0)) return [];
  const all: Span[] = [];
  for (const run of runs) {
    const parts = [
      ...(run.groups.length > 1 ? [{ span: run, digits: digitsOf(text.text, run.groups) }] : []),
      ...ownGroups(text.text, run.groups),
    ];
    const found = parts.find((part) => isRoutingNumber(part, naming));
    if (found) all.push({ start: found.span.start, end: found.span.end });
  }
  return all;
}

type Part = { span: Span; digits: string };

function isRoutingNumber({ span, digits }: Part, naming: Record<"aba" | "lone" | "sortCode", Labels>): boolean {
  const { aba, lone, sortCode } = naming;
  if (digits.length !== 9) return (digits.length === 6 || digits.length === 8) && sortCode.nearness(span) === "direct";
  if (aba.nearness(span) !== undefined) return true;
  const nearness = lone.nearness(span);
  return nearness === "direct" || (nearness === "near" && abaPrefix.test(digits) && hasAbaChecksum(digits));
}

function ownGroups(text: string, groups: readonly Span[]): Part[] {
  return groups.map((span) => ({ span, digits: text.slice(span.start, span.end) }));
}
