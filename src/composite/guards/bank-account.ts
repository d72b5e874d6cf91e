import { dateAt } from "./dates.ts";
import { type DigitRun, separatorsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import type { Span } from "./spans.ts";

/** Labels that name an account's number, and those that name an account only. */
const numberLabels = labelPattern(
  "(?:bank|checking|chequing|savings?|deposit|current|brokerage|giro|routing and)[ _-]?(?:account|acct|acc|a/c)s?(?:[ _-]?(?:number|no|num|nr|#))?",
  "(?:account|acct|acc|a/c|ac)[ _.-]{0,2}(?:numbers?|nos?|num|nbr|nr|#)",
  "(?:bank|checking|savings?|dda|direct deposit) ?(?:number|no|num|#)",
  "(?:numero de )?(?:cuenta|conta|conto|compte)(?: (?:bancaria|bancario|corrente|corriente|courant|bancaire|poupanca|de ahorros?))?",
  "konto(?:nummer|nr)?|bankverbindung|rekening(?:nummer)?|kontonummer|tilinumero|numer konta|rachunek|hesap(?: no| numarasi)?",
  "clabe|cbu|bban|rib|nuban",
);
const loneLabels = labelPattern(
  "(?:accounts?|acct|accts|a/c|acc)(?! ?(?:manager|executive|holder|team|receivable|payable|type|age|since|created|opened|takeover|settings?|page|login|password))",
  "(?:checking|savings)",
);
/** Where money goes: "wire to 000123456789", "transfer $500 into 000123456789". */
const targets = labelPattern(
  "(?:wire|wired|deposit|deposited|remit|remitted)(?: (?:it|this|that|money|cash|funds|payment|the (?:money|funds|payment|amount|rest|balance)))? (?:in)?to",
  "(?:transfer|transferred|send|sent|move|moved|pay|paid|wire|wired|deposit|remit)(?: (?:the|some|my|all))? (?:money|cash|funds|payments?|salary|wages|[$\u20ac\u00a3]? ?[\\d,.]{1,12}(?: ?(?:usd|eur|gbp|dollars|euros|pounds))?) (?:in)?to",
);
/** The end of a label that names a number, rather than an account that has one. */
const endsWithNumber = /(?:numbers?|nos?|num|nbr|nr|#|nummer)$/;
const otherNumbers = labelPattern(
  "card|cards|visa|mastercard|amex|swift|bic|ifsc|micr|year|since|opened|closed|created|user|customer id|usd|eur|gbp|limit|deposit of|worth|shows|holds|contains|grew|fell|earns|statement|january|february|march|april|june|july|august|september|october|november|december",
);
const MIN = 6;
const MAX = 17;
/** National forms with a label of their own (CLABE 18, CBU 22, RIB 23, NRB 26). */
const MAX_LABELLED = 26;
/** A lone "account" names no number of a ledger, which has up to six digits. */
const MIN_LONE = 7;
/** A lone "account" names a number of at least this many digits when it does not stand right before it. */
const MIN_NEAR_LONE = 8;
const MIN_TARGET = 8;

type Naming = { numbers: Labels; lone: Labels; targets: Labels; others: readonly Span[] };

/** Bank account numbers have no form of their own: 6 to 17 digits, or a national form, that an account's label names. */
export function findBankAccounts(text: GuardText): Span[] {
  const [close, loose] = [text.digits.runs(MIN), text.digits.looseRuns(MIN)];
  if (close.length + loose.length === 0) return [];
  const numbers = findLabels(text, numberLabels);
  const lone = findLabels(text, loneLabels);
  const named = { numbers, lone, targets: findLabels(text, targets) };
  if (Object.values(named).every(({ spans }) => spans.length === 0)) return [];
  const others = [...text.otherLabels, ...findLabels(text, otherNumbers).spans].sort((a, b) => a.end - b.end);
  const found: Span[] = [];
  for (const run of close) {
    const part = candidates(text.text, run).find((part) => isAccount(part, { ...named, others }));
    if (part) found.push({ start: part.start, end: part.end });
  }
  if (numbers.spans.length === 0) return found;
  for (const run of [...close, ...loose]) {
    if (isOddlyParted(text.text, run, numbers, others)) found.push({ start: run.start, end: run.end });
  }
  return found;
}

/** "Account number 12,345,678": right after the name of a number any separators do. */
function isOddlyParted(text: string, run: DigitRun, numbers: Labels, others: readonly Span[]): boolean {
  if (run.groups.length < 2 || run.length > MAX_LABELLED || !endsWithNumber.test(numbers.wordsBefore(run)))
    return false;
  const date = dateAt(text, run.start);
  return numbers.nearness(run, others) === "direct" && (date === undefined || date.isCompact);
}

type Part = Span & { digits: number };

function candidates(text: string, run: DigitRun): Part[] {
  const parts: Part[] = [];
  const isDivided = run.groups.length > 1;
  const gaps = separatorsOf(text, run.groups);
  const joins = gaps.every((one) => /^[ -]{1,3}$/.test(one));
  if (isDivided && joins) parts.push({ start: run.start, end: run.end, digits: run.length });
  for (const [index, group] of run.groups.entries()) {
    const isFraction = [gaps[index - 1], gaps[index]].includes(".");
    if (!isFraction) parts.push({ ...group, digits: group.end - group.start });
  }
  return parts.filter((part) => part.digits >= MIN && part.digits <= MAX_LABELLED && isNumberOnly(text, part));
}

/** Neither money, nor a share, nor a part of a name or a date. */
function isNumberOnly(text: string, { start, end }: Span): boolean {
  const before = text.slice(Math.max(0, start - 4), start);
  if (/(?:[$\u20ac\u00a3\u00a5]|usd|eur|gbp) ?$|[a-z]$/.test(before)) return false;
  if (/^(?:[a-z]|,\d{3}(?!\d)|\.\d| ?(?:%|usd|eur|gbp|dollars|euros|pounds))/.test(text.slice(end, end + 9)))
    return false;
  const date = dateAt(text, start);
  return date === undefined || date.isCompact;
}

function isAccount(part: Part, labels: Naming): boolean {
  const byNumber = labels.numbers.nearness(part, labels.others);
  if (byNumber === "direct") return true;
  if (part.digits > MAX) return false;
  if (byNumber === "near") return true;
  if (part.digits >= MIN_TARGET && labels.targets.nearness(part, labels.others) === "direct") return true;
  const byLone = labels.lone.nearness(part, labels.others);
  return (byLone === "direct" && part.digits >= MIN_LONE) || (byLone === "near" && part.digits >= MIN_NEAR_LONE);
}
