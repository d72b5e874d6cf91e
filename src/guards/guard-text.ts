import { type Digits, findDigits } from "./digits.ts";
import { foldText } from "./fold-text.ts";
import type { Reading } from "./readings.ts";
import { findSpans, type Span } from "./spans.ts";

/** A text as the recognisers read it: folded, with its digits. All positions are in the folded text. */
export type GuardText = {
  text: string;
  digits: Digits;
  /** Every match of a global pattern, as `findSpans` finds them; each pattern is searched for once. */
  spans(pattern: RegExp): readonly Span[];
  /** Numbers of other things, which keep a label from reaching over them. */
  otherLabels: readonly Span[];
  /** The span in the original text. */
  toOriginal(span: Span): Span;
};

/** Names of other numbers. A label of ours counts for a number only when none of these stands between. */
const otherLabel =
  /(?<![a-z])(?:orders?|order ?ids?|po|p\.?o\.? box|box|invoices?|inv|tickets?|case|claims?|tracking|track|shipments?|parcels?|refs?|reference|confirmation|bookings?|reservations?|phones?|telephone|tel|mobile|cell|fax|call(?:ed|ing)?|contact|zip|zip ?codes?|postal|post ?codes?|plz|isbn|issn|ean|upc|gtin|asin|sku|barcode|serial|model|imei|vin|versions?|ver|flight|room|suite|apt|floor|ext|extension|counts?|total|sum|qty|quantity|amounts?|balance|pages?|doses?|price|transactions?|txn|product|part|batch|lot|licen[cs]e|passport|employee|npi|icd|cpt|ndc|loinc|snomed|pmid|pmcid|doi|nct|ein|vat|duns|coupon|voucher|gift|loyalty|membership|library|pin|otp|error|build|commit|issue|bug|port|ip|mac|uuid|guid|hash|budget|salary|revenue|income|score|steps?|points?|weights?|heights?|glucose|population)(?![a-z])/g;

/** Folds a reading of a text and finds its digits. Linear in its length. */
export function readGuardText(reading: Reading): GuardText {
  const { text: original } = reading;
  const { text, origin } = foldText(original, reading.isLenient);
  const found = new Map<RegExp, readonly Span[]>();
  const spans = (pattern: RegExp) => {
    const known = found.get(pattern) ?? findSpans(text, pattern);
    found.set(pattern, known);
    return known;
  };
  return {
    text,
    digits: findDigits(text),
    spans,
    get otherLabels() {
      return spans(otherLabel);
    },
    toOriginal: ({ start, end }) => {
      const last = origin[end - 1] ?? 0;
      const width = (original.codePointAt(last) ?? 0) > 0xffff ? 2 : 1;
      return reading.toOriginal({
        start: origin[start] ?? 0,
        end: Math.min(original.length, Math.max(last + width, wordEnd(original, last))),
      });
    },
  };
}

/** A digit that was written as a word ends where its word ends. */
function wordEnd(text: string, at: number): number {
  return at + (/^\p{Script=Latin}+/u.exec(text.slice(at, at + 20))?.[0].length ?? 0);
}
