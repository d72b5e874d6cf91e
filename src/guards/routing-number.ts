import { hasAbaChecksum } from "./checksums.ts";
import { toPart } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { labelPattern } from "./labels.ts";
import { findNamedNumbers, type NumberRule } from "./named-numbers.ts";
import type { Span } from "./spans.ts";

const numberWord = "(?:number|no|num|code|#)";
/** First two digits that the American Bankers Association assigns: Federal Reserve, thrifts, electronic, cheques. */
const abaPrefix = /^(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)/;
const isNine = (digits: string) => digits.length === 9;

/**
 * Numbers that name a bank in a payment: US routing numbers, nine digits that a label names (near the bare word "routing", which
 * networks have too, one in ten that the checksum allows), and British and other sort codes, by label and form.
 */
const rules: readonly NumberRule[] = [
  {
    labels: labelPattern(
      `(?:aba|ach|wire|bank)?[ _-]{0,2}routing(?: ?(?:and|&|/) ?transit)?[ _-]?${numberWord}`,
      "rtn",
      "aba",
      `transit(?: routing)? ?${numberWord}`,
    ),
    isDirect: isNine,
    isNear: isNine,
  },
  {
    labels: labelPattern("(?:aba|ach|wire|bank)?[ _-]{0,2}routing"),
    isDirect: isNine,
    isNear: (digits) => abaPrefix.test(digits) && hasAbaChecksum(digits),
  },
  {
    labels: labelPattern("sort ?-?codes?", "bankleitzahl|blz", "bsb"),
    isDirect: ({ length }) => length === 6 || length === 8,
  },
];

/** Finds them in a run of digits as a whole, or in one of its groups. */
export function findRoutingNumbers(text: GuardText): Span[] {
  return findNamedNumbers(text, text.digits.runs(6), {
    rules,
    partsOf: ({ groups }) =>
      [...(groups.length > 1 ? [groups] : []), ...groups.map((group) => [group])].map((some) =>
        toPart(text.text, some),
      ),
  });
}
