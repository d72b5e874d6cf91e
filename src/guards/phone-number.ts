import { dateAt } from "./dates.ts";
import { type DigitPart, type DigitRun, endsOfForms, findParts, separatorsOf, sizesOf, toPart } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import { lastEndingBefore, type Span } from "./spans.ts";

/** Digits of an international number at most (ITU-T E.164), and of one that a label names at least. */
const MAX = 15;
const MIN_INTERNATIONAL = 8;
const MIN_NAMED = 7;
/** Digits after a `+` in one piece that are more likely a number of something. */
const MIN_IN_ONE = 10;

const labels = labelPattern(
  "(?:tele)?phones?|phone ?(?:numbers?|nos?|num|nr|#)|tel(?:ephone)?\\.?(?: ?(?:no|nr|numbers?)\\.?)?|mobiles?|cell(?:phone|ular)?s?|landline|fax|hotline|whatsapp|viber|sms",
  "(?:call|text|ring|reach|phone|contact)(?: (?:me|him|her|us|them|back|you))?(?: (?:at|on|under))?|dial|callback number|contact numbers?",
  "telefon(?:nummer|numer|szam)?|handy(?:nummer)?|rufnummer|mobil(?:nummer|telefon)?|durchwahl",
  "telefonos?|celular|movil|telephone|portable|telefones?|telemovel|cellulare|telefoon(?:nummer)?|gsm|telefonu",
);
/** Names of other numbers of these lengths. */
const others = labelPattern(
  "orders?|invoices?|inv|tickets?|case|claims?|tracking|shipments?|parcels?|refs?|reference|confirmation|bookings?|reservations?|accounts?|acct|iban|isbn|issn|ean|upc|gtin|sku|serial|model|imei|vin|versions?|ver|ssn|mrn|cards?|npi|ein|vat|doi|pmid|build|commit|issue|port|uuid|guid|hash|parts?|batch|lot|licen[cs]e|policy|passport|patient|member|transactions?|routing|zip|postal|id|ids|page|timestamp|epoch|coordinates?|lat|lon|total|sum|amounts?|quantity|qty|price|score",
);
const OTHER_REACH = 24;

/**
 * Telephone numbers: international ones by their `+`, those of North America by their form (area and exchange begin with 2 to
 * 9), French ones by theirs, and any of 7 to 15 digits that a label names.
 */
export function findPhoneNumbers(text: GuardText): Span[] {
  const runs = text.digits.runs(MIN_NAMED);
  if (runs.length === 0) return [];
  const named = findLabels(text, labels);
  const breaking = text.spans(others);
  return findParts(
    runs,
    (run) => candidates(text.text, run),
    (part) => isPhone(text.text, part, { named, breaking }),
  ).map((span) => withSign(text.text, span));
}

type Part = DigitPart & { sizes: readonly number[]; separators: readonly string[] };

/** The groups of a run from a `+` on, the run as a whole, and those of its groups that have North America's form. */
function candidates(text: string, { groups, length }: DigitRun): Part[] {
  const sizes = sizesOf(groups);
  const toCandidate = (from: number, to: number): Part => {
    const taken = groups.slice(from, to);
    return { ...toPart(text, taken), sizes: sizes.slice(from, to), separators: separatorsOf(text, taken) };
  };
  const isSigned = (at: number) => isAfterPlus(text, groups[at]?.start ?? 0);
  const signed = sizes.flatMap((_, from) => {
    if (!isSigned(from)) return [];
    let [to, count] = [from + 1, sizes[from] ?? 0];
    while (to < sizes.length && count + (sizes[to] ?? 0) <= MAX && !isSigned(to)) {
      count += sizes[to] ?? 0;
      to += 1;
    }
    return [toCandidate(from, to)];
  });
  const whole = length <= MAX ? [toCandidate(0, groups.length)] : [];
  const formed = sizes.flatMap((_, from) => endsOfForms(sizes, from, [[3, 3, 4]]).map((to) => toCandidate(from, to)));
  return [...signed, ...whole, ...formed];
}

const isAfterPlus = (text: string, start: number) =>
  /(?:^|[^a-z0-9)\]])\+ ?\(?$/.test(text.slice(Math.max(0, start - 4), start));

type Naming = { named: Labels; breaking: readonly Span[] };

function isPhone(text: string, part: Part, { named, breaking }: Naming): boolean {
  const { digits, sizes, separators, start } = part;
  if (digits.length > MAX || isOfWord(text, part) || /^(\d)\1*$/.test(digits)) return false;
  const date = dateAt(text, start);
  const isDate = date !== undefined && date.parts === "full" && !date.isCompact;
  if (isAfterPlus(text, start)) {
    const isPlain = separators.every((one) => one.length <= 3);
    return digits[0] !== "0" && isPlain && digits.length >= (sizes.length === 1 ? MIN_IN_ONE : MIN_INTERNATIONAL);
  }
  const other = breaking[lastEndingBefore(breaking, start)];
  const nearness = named.nearness(part, breaking);
  if (!isDate && nearness !== undefined && digits.length >= MIN_NAMED)
    return nearness === "direct" || sizes.length > 1 || digits.length >= MIN_IN_ONE;
  if (other !== undefined && start - other.end < OTHER_REACH) return false;
  return isOfPairs(part) || (!isDate && hasForm(text, part));
}

/** France's form: five pairs, parted in one way. */
function isOfPairs({ digits, sizes, separators: [first = "x", ...rest] }: Part): boolean {
  return (
    sizes.join() === "2,2,2,2,2" &&
    /^0[1-9]/.test(digits) &&
    /^[ .-]$/.test(first) &&
    rest.every((one) => one === first)
  );
}

const american = /^1?[2-9]\d\d[2-9]\d{6}$/;

/** North America's form, which needs no label: with a bracket, dashes or dots. */
function hasForm(text: string, { digits, sizes, separators, start, end }: Part): boolean {
  if (/^[.,/-]\d/.test(text.slice(end, end + 2)) || !american.test(digits)) return false;
  const form = sizes.join();
  if (form !== "3,3,4" && form !== "1,3,3,4") return false;
  if (text[start - 1] === "(" && /^\) ?/.test(separators[0] ?? "")) return true;
  return separators.slice(-2).every((one) => /^(?:[-.]|\)[ -]?)$/.test(one.trim()));
}

/** Whether letters or a decimal point make the digits a part of something else. */
function isOfWord(text: string, { start, end }: Span): boolean {
  if (/[a-z_]/.test(text[end] ?? "") && !/^(?:x|ext)/.test(text.slice(end, end + 3))) return true;
  return /[a-z_]$|\d[.,]$/.test(text.slice(Math.max(0, start - 2), start));
}

/** With the `+` and the bracket before it. */
function withSign(text: string, { start, end }: Span): Span {
  const sign = /(?:\+ ?)?\(?$/.exec(text.slice(Math.max(0, start - 3), start))?.[0] ?? "";
  return { start: start - sign.length, end };
}
