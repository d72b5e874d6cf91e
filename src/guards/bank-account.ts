import { dateAt } from "./dates.ts";
import { type DigitPart, type DigitRun, separatorsOf, toPart } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, labelPattern } from "./labels.ts";
import { findNamedNumbers, type NumberRule } from "./named-numbers.ts";
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

const ofLength =
  (least: number, most = MAX) =>
  ({ length }: string) =>
    length >= least && length <= most;
const rules: readonly NumberRule[] = [
  { labels: numberLabels, isDirect: ofLength(MIN, MAX_LABELLED), isNear: ofLength(MIN) },
  { labels: targets, isDirect: ofLength(8) },
  // a lone "account" names no number of a ledger, which has up to six digits
  { labels: loneLabels, isDirect: ofLength(7), isNear: ofLength(8) },
];

/** Bank account numbers have no form of their own: 6 to 17 digits, or a national form, that an account's label names. */
export function findBankAccounts(text: GuardText): Span[] {
  const runs = text.digits.runs(MIN);
  const close = runs.filter(({ isLoose }) => !isLoose);
  const others = () => [...text.otherLabels, ...text.spans(otherNumbers)].sort((a, b) => a.end - b.end);
  const found = findNamedNumbers(text, close, { rules, partsOf: (run) => candidates(text.text, run), others });
  if (runs.length === 0 || text.spans(numberLabels).length === 0) return found;
  return [...found, ...findOddlyParted(text, runs, others())];
}

/** "Account number 12,345,678": right after the name of a number any separators do. */
function findOddlyParted(text: GuardText, runs: readonly DigitRun[], others: readonly Span[]): Span[] {
  const numbers = findLabels(text, numberLabels);
  const isOddlyParted = (run: DigitRun) => {
    if (run.groups.length < 2 || run.length > MAX_LABELLED || !endsWithNumber.test(numbers.wordsBefore(run)))
      return false;
    const date = dateAt(text.text, run.start);
    return numbers.nearness(run, others) === "direct" && (date === undefined || date.isCompact);
  };
  return runs.filter(isOddlyParted).map(({ start, end }) => ({ start, end }));
}

function candidates(text: string, run: DigitRun): DigitPart[] {
  const gaps = separatorsOf(text, run.groups);
  const isWhole = gaps.length > 0 && gaps.every((one) => /^[ -]{1,3}$/.test(one));
  const own = run.groups.filter((_, index) => ![gaps[index - 1], gaps[index]].includes(".")); // else a fraction's
  return [...(isWhole ? [run.groups] : []), ...own.map((group) => [group])]
    .map((groups) => toPart(text, groups))
    .filter((part) => ofLength(MIN, MAX_LABELLED)(part.digits) && isNumberOnly(text, part));
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
