import { hasAbaChecksum } from "./checksums.ts";
import { digitsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, labelPattern } from "./labels.ts";
import type { Span } from "./spans.ts";

const abaLabels = labelPattern(
  "(?:aba|ach|wire|bank)?[ _-]{0,2}routing(?: ?(?:and|&|/) ?transit)?(?:[ _-]?(?:number|no|num|code|#))?",
  "rtn",
  "aba",
  "transit(?: routing)? ?(?:number|no|num|code|#)",
);
const sortCodeLabels = labelPattern("sort ?-?codes?", "bankleitzahl|blz", "bsb");
/** First two digits that the American Bankers Association gives out: Federal Reserve, thrifts, electronic, cheques. */
const abaPrefix = /^(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)/;

/**
 * Numbers that name a bank in a payment: US routing numbers, by label and checksum (one in ten numbers of nine digits passes
 * it), and British and other sort codes, by label and form.
 */
export function findRoutingNumbers(text: GuardText): Span[] {
  const aba = findLabels(text, abaLabels);
  const sortCode = findLabels(text, sortCodeLabels);
  if (aba.spans.length + sortCode.spans.length === 0) return [];
  const all: Span[] = [];
  for (const run of text.digits.runs(6)) {
    const parts = [
      ...(run.groups.length > 1 ? [{ span: run, digits: digitsOf(text.text, run.groups) }] : []),
      ...ownGroups(text.text, run.groups),
    ];
    const found = parts.find(({ span, digits }) =>
      digits.length === 9
        ? abaPrefix.test(digits) && hasAbaChecksum(digits) && aba.nearness(span) !== undefined
        : (digits.length === 6 || digits.length === 8) && sortCode.nearness(span) === "direct",
    );
    if (found) all.push({ start: found.span.start, end: found.span.end });
  }
  return all;
}

function ownGroups(text: string, groups: readonly Span[]): { span: Span; digits: string }[] {
  return groups.map((span) => ({ span, digits: text.slice(span.start, span.end) }));
}
