import { hasLuhnDigit } from "./checksums.ts";
import { type DigitPart, type DigitRun, endsOfForms, findParts, sizesOf, toPart } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import { lastEndingBefore, type Span } from "./spans.ts";

const cardLabels = labelPattern(
  "(?:credit|debit|bank|payment|charge|prepaid|atm|business|corporate|virtual)[ _-]{0,2}cards?",
  "(?<!(?:library|gift|loyalty|business|membership|member|club|sim|id|identity|insurance|report|score|punch) )cards?(?! (?:id|sort))",
  "c[ ./-]?cs?",
  "cc ?(?:#|no|num|number)",
);
/** Words that name other things too: they name a number whose check digit is wrong only right before it. */
const brandLabels = labelPattern(
  "pan",
  "visa|master ?card|amex|american express|discover|diners(?: club)?|jcb|maestro|union ?pay|rupay",
  "tarjeta|carte(?: bancaire| bleue)?|kreditkarte|karte|carta|cartao|kaart|kort|karta",
);
/** Other numbers of this length whose check digits agree with a card's now and then. */
const otherNumbers = labelPattern(
  "isbn|issn|ean|upc|gtin|barcode|imei|tracking|track|awb|waybill|serial|order|invoice|library|gift|loyalty|sku|vat|uuid|guid|transaction|reference|ref|timestamp|phone|tel|fax|sim|iccid",
);
/** Longest and shortest card numbers, in digits (ISO/IEC 7812-1); twelve occur with Maestro alone and need a label. */
const MIN = 12;
const MAX = 19;
const LABEL_REACH = 40;

/** Sizes of a card's groups: one piece, pairs, 4-6-5 (American Express), 4-6-4 (Diners), fours with a shorter last group. */
const forms =
  "12 13 14 15 16 17 18 19 8-8 6-10 6-13 4-6-5 4-6-4 4-4-5 4-4-4-1 4-4-4-2 4-4-4-3 4-4-4-4 4-4-4-4-1 4-4-4-4-2 4-4-4-4-3"
    .split(" ")
    .map((form) => form.split("-").map(Number));

type Naming = { cards: Labels; brands: Labels; all: Labels; others: readonly Span[] };

/**
 * Payment card numbers. Without a label: 13 to 19 digits that pass Luhn and begin as some issuer's cards of that length do, in
 * one piece or in groups. Right after a label ("card", "cc"), or near one, length and form are enough: a number that was
 * mistyped or made up is still meant as a card's.
 */
export function findCardNumbers(text: GuardText): Span[] {
  const runs = text.digits.runs(MIN);
  if (runs.length === 0) return [];
  const naming: Naming = {
    cards: findLabels(text, cardLabels),
    brands: findLabels(text, brandLabels),
    all: findLabels(text, cardLabels, brandLabels),
    others: text.spans(otherNumbers),
  };
  return findParts(
    runs,
    (run) => candidates(text.text, run).filter(({ isForm }) => isForm || !run.isLoose),
    (part) => isCard(text, part, naming),
  );
}

/** `isForm`: its groups are such as those of cards. */
type Part = DigitPart & { isOfTable: boolean; isForm: boolean };

/** The run as a whole, and those parts of a longer one that are grouped as cards are. */
function candidates(text: string, { groups, length }: DigitRun): Part[] {
  const sizes = sizesOf(groups);
  const toCandidate = (from: number, to: number, isForm: boolean): Part => {
    // fours among fours are numbers of a table more often than a card; a date or a code beside them is none of them
    const isOfTable = to - from > 1 && (sizes[from - 1] === 4 || sizes[to] === 4);
    return { ...toPart(text, groups.slice(from, to)), isOfTable, isForm };
  };
  const isForm = endsOfCards(sizes, 0).includes(groups.length);
  const whole = length <= MAX ? [toCandidate(0, groups.length, isForm)] : [];
  if (groups.length === 1) return whole;
  return [...whole, ...sizes.flatMap((_, from) => endsOfCards(sizes, from).map((to) => toCandidate(from, to, true)))];
}

/** Where cards end that begin at the group `from`: in one of their forms, or digit by digit. */
function endsOfCards(sizes: readonly number[], from: number): number[] {
  if (sizes[from] !== 1) return endsOfForms(sizes, from, forms);
  if (sizes[from - 1] === 1) return []; // a row of single digits is read from its first on
  let to = from;
  while (to - from < MAX && sizes[to] === 1) to += 1;
  return to - from >= MIN ? [to] : [];
}

function isCard(text: GuardText, part: Part, naming: Naming): boolean {
  const { digits } = part;
  const { all, others } = naming;
  const label = all.spans[lastEndingBefore(all.spans, part.start)];
  if (isGlued(text.text, part, label)) return false;
  const other = others[lastEndingBefore(others, part.start)];
  const isOtherwiseNamed =
    other !== undefined && part.start - other.end <= LABEL_REACH && !(label && label.start >= other.end);
  if (!isOtherwiseNamed && part.isForm && isMeantAsCard(text, part, naming)) return true;
  if (!hasLuhnDigit(digits) || /^(\d)\1*$/.test(digits)) return false;
  const isLabelled =
    (label !== undefined && part.start - label.end <= LABEL_REACH) || all.nearness(part, []) !== undefined;
  if (isLabelled && !isOtherwiseNamed) return digits.length > MIN || hasIssuer(digits);
  if (!hasIssuer(digits) || digits.length === MIN) return false;
  if (part.isOfTable && !text.text.slice(part.start, part.end).includes("-")) return isLabelled;
  return !isOtherwiseNamed || digits.length >= 15;
}

/** Whether a label names a number of a card's form, whatever its digits. Twelve digits are more often something else. */
function isMeantAsCard({ otherLabels }: GuardText, part: Part, { cards, brands }: Naming): boolean {
  const nearness = cards.nearness(part, otherLabels);
  if (nearness === "direct") return true;
  if (part.isOfTable || part.digits.length === MIN) return false;
  return nearness === "near" || brands.nearness(part, otherLabels) === "direct";
}

/** Whether letters or a decimal point make the digits a part of something else: a hash, a GUID, a fraction. */
function isGlued(text: string, { start, end }: Span, label: Span | undefined): boolean {
  const before = text[start - 1] ?? "";
  const isAfterMark = label?.end === start || text.slice(start - 2, start) === "%b"; // a magnetic stripe begins with %B
  if (/[a-z]/.test(before) && !isAfterMark) return true;
  if (/[a-z]/.test(text[end] ?? "") && !(isAfterMark && ownFields.test(text.slice(end, end + 8)))) return true;
  return /\d[.,]$/.test(text.slice(Math.max(0, start - 2), start)) && /^\d+$/.test(text.slice(start, end));
}

/** What a card's number is followed by in one word: "cc4012…exp1229". */
const ownFields = /^(?:exp|cv|valid|thru|ccv|csc|cid|pin|zip|name|and|is)/;

/** Prefixes of the issuers that are in use, by the lengths of their cards. */
const issuers = [
  { prefixes: "4", lengths: [13, 16, 18, 19] }, // Visa
  // Mastercard; UnionPay and RuPay; RuPay and Hipercard; Troy
  { prefixes: "51-55 2221-2720 81-82 508 60 9792", lengths: [16] },
  { prefixes: "34 37 1800 2131", lengths: [15] }, // American Express; JCB
  { prefixes: "300-305 3095 36 38-39", lengths: [14, 15, 16, 17, 18, 19] }, // Diners Club
  // Discover, partly with UnionPay; JCB; UnionPay; Mir
  { prefixes: "6011 644-659 622126-622925 3528-3589 62 2200-2204", lengths: [16, 17, 18, 19] },
  { prefixes: "50 56-58 63 67", lengths: [12, 13, 14, 15, 16, 17, 18, 19] }, // Maestro
].map(({ prefixes, lengths }) => ({ lengths, ranges: prefixes.split(" ").map((range) => range.split("-")) }));

function hasIssuer(digits: string): boolean {
  const isIn = ([from = "", to = from]: string[]) => {
    const prefix = digits.slice(0, from.length);
    return prefix >= from && prefix <= to;
  };
  return issuers.some(({ lengths, ranges }) => lengths.includes(digits.length) && ranges.some(isIn));
}
