import { hasLuhnDigit } from "./checksums.ts";
import { type DigitRun, digitsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern, mergeLabels } from "./labels.ts";
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

type Naming = { cards: Labels; brands: Labels; all: Labels; others: Labels };

/**
 * Payment card numbers. Without a label: 13 to 19 digits that pass Luhn and begin as some issuer's cards of that length do, in
 * one piece or in groups. Right after a label ("card", "cc"), or near one, the length and the form alone tell: a number that was
 * mistyped or made up is still meant as a card's.
 */
export function findCardNumbers(text: GuardText): Span[] {
  const [close, loose] = [text.digits.runs(MIN), text.digits.looseRuns(MIN)];
  if (close.length + loose.length === 0) return [];
  const [cards, brands] = [findLabels(text, cardLabels), findLabels(text, brandLabels)];
  const naming = { cards, brands, all: mergeLabels(text, cards, brands), others: findLabels(text, otherNumbers) };
  const found: Span[] = [];
  const add = (run: DigitRun, isLoose: boolean) => {
    const part = candidates(text.text, run).find((part) => (part.isForm || !isLoose) && isCard(text, part, naming));
    if (part) found.push({ start: part.start, end: part.end });
  };
  for (const run of close) add(run, false);
  for (const run of loose) add(run, true);
  return found;
}

/** `isForm`: its groups are such as those of cards. */
type Part = Span & { digits: string; isOfTable: boolean; isForm: boolean };

/** The run as a whole, and those parts of a longer one that are grouped as cards are. */
function candidates(text: string, run: DigitRun): Part[] {
  const { groups } = run;
  const parts: Part[] = [];
  const isFour = (group: Span | undefined) => group !== undefined && group.end - group.start === 4;
  const add = (from: number, to: number, isForm: boolean) => {
    const taken = groups.slice(from, to);
    // fours among fours are numbers of a table more often than a card; a date or a code beside them is none of them
    const isOfTable = taken.length > 1 && (isFour(groups[from - 1]) || isFour(groups[to]));
    const digits = digitsOf(text, taken);
    const [start = 0, end = 0] = [taken[0]?.start, taken.at(-1)?.end];
    parts.push({ start, end, digits, isOfTable, isForm });
  };
  if (run.length <= MAX) add(0, groups.length, endsOfCards(groups, 0).includes(groups.length));
  if (groups.length === 1) return parts;
  for (let from = 0; from < groups.length; from += 1) {
    for (const to of endsOfCards(groups, from)) add(from, to, true);
  }
  return parts;
}

/** One piece, fours with a shorter last group, 4-6-5 (American Express), 4-6-4 (Diners), other pairs, or digit by digit. */
function endsOfCards(groups: readonly Span[], from: number): number[] {
  const sizeAt = (index: number) => {
    const group = groups[index];
    return group ? group.end - group.start : 0;
  };
  const first = sizeAt(from);
  if (first >= MIN) return first <= MAX ? [from + 1] : [];
  if (first === 1) {
    if (sizeAt(from - 1) === 1) return []; // a row of single digits is read from its first on
    let to = from;
    while (to - from < MAX && sizeAt(to) === 1) to += 1;
    return to - from >= MIN ? [to] : [];
  }
  const [second, third] = [sizeAt(from + 1), sizeAt(from + 2)];
  if ((first === 8 && second === 8) || (first === 6 && (second === 10 || second === 13))) return [from + 2];
  if (first !== 4) return [];
  if (second === 6) return third === 5 || third === 4 ? [from + 3] : [];
  if (second !== 4) return [];
  if (third === 5) return [from + 3];
  const fourth = sizeAt(from + 3);
  if (third !== 4 || fourth === 0 || fourth > 4) return [];
  const fifth = fourth === 4 ? sizeAt(from + 4) : 0;
  return fifth > 0 && fifth < 4 ? [from + 4, from + 5] : [from + 4];
}

function isCard(text: GuardText, part: Part, naming: Naming): boolean {
  const { digits } = part;
  const { all, others } = naming;
  const label = all.spans[lastEndingBefore(all.spans, part.start)];
  if (isGlued(text.text, part, label)) return false;
  const other = others.spans[lastEndingBefore(others.spans, part.start)];
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
