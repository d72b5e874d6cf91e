import { monthOf } from "./months.ts";
import type { Span } from "./spans.ts";

/** A date in a text. `parts`: all of it, a month with its year, or a day without a year. */
export type FoundDate = Span & { parts: "full" | "month-year" | "month-day"; isCompact: boolean };

/** Nobody alive was born before, and no record tells of births after; in years. */
const FIRST_YEAR = 1890;
const LAST_YEAR = 2099;

const yearFirst = /(\d{4})( ?[-/. ] ?)(\d{1,2})\2(\d{1,2})(?!\d|[-/.]\d)/y;
const yearLast = /(\d{1,2})(?: ?([-/. ]) ?)(\d{1,2})(?: ?\2 ?)(\d{4}|\d{2})(?!\d|[-/]\d|\.\d)/y;
const withMarks = /(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]/y;
const compact = /(\d{8}|\d{6})(?![\d-])/y;
/** After a day: "th of march, 1985", ". mars 1985", "-mar-85", "mar1985", " de marzo de 1985". */
const monthAfterDay =
  /\d{1,2}(?:st|nd|rd|th|er|o|\u00ba|\u00aa|\.)?[ ./,-]{0,3}(?:(?:day )?of |(?:the )?|de |di |den |d')(\p{L}{3,12})\.?(?:[ ./,-]{0,3}(?:(?:de|del|of|do) )?'?(\d{4}|\d{2})(?![\d:]))?/uy;
/** After a month: "march 15th, 1985", "mar-15-1985", "march 1985". */
const afterMonth = /(\d{1,2})(?:st|nd|rd|th)?(?![\d:])(?:[ ,./-]{1,3}'?(\d{4}|\d{2})(?![\d:]))?/y;
const yearAlone = /'?\d{4}(?!\d)/y;
/** What may stand between a month and the day or year after it. */
const MAX_MONTH_GAP = 3;
const MAX_MONTH = 18;

/**
 * The date that begins with the digits at `at`, or with the month's name right before them; undefined when there is none.
 * Takes a folded text; looks at a bounded part of it.
 */
export function dateAt(text: string, at: number): FoundDate | undefined {
  return numericDate(text, at) ?? namedDate(text, at);
}

function numericDate(text: string, at: number): FoundDate | undefined {
  const first = match(yearFirst, text, at) ?? match(withMarks, text, at);
  if (first) {
    const [, year, , month, day] = first.length === 5 ? first : [first[0], first[1], "", first[2], first[3]];
    if (isYear(year) && isMonth(month) && isDay(day)) return full(at, first[0].length);
  }
  const last = match(yearLast, text, at);
  if (last) {
    const [, a, , b, year = ""] = last;
    const isEitherOrder = (isDay(a) && isMonth(b)) || (isMonth(a) && isDay(b));
    if (isEitherOrder && (year.length === 2 || isYear(year))) return full(at, last[0].length);
  }
  const digits = match(compact, text, at)?.[1];
  return digits !== undefined && isCompactDate(digits) ? { ...full(at, digits.length), isCompact: true } : undefined;
}

function isCompactDate(digits: string): boolean {
  const [a, b, c] = [digits.slice(0, 2), digits.slice(2, 4), digits.slice(4)];
  const isEitherOrder = (isDay(a) && isMonth(b)) || (isMonth(a) && isDay(b));
  if (digits.length === 6) return isEitherOrder || (isMonth(b) && isDay(c));
  const isYearFirst = isYear(digits.slice(0, 4)) && isMonth(digits.slice(4, 6)) && isDay(digits.slice(6));
  return isYearFirst || (isEitherOrder && isYear(c));
}

function namedDate(text: string, at: number): FoundDate | undefined {
  const dayFirst = match(monthAfterDay, text, at);
  if (dayFirst && monthOf(dayFirst[1] ?? "") !== undefined && isDay(/^\d+/.exec(dayFirst[0])?.[0])) {
    const [all, , year] = dayFirst;
    if (year === undefined) return { start: at, end: at + all.length, parts: "month-day", isCompact: false };
    if (year.length === 2 || isYear(year)) return full(at, all.length);
  }
  const start = monthBefore(text, at);
  if (start === undefined) return undefined;
  const year = match(yearAlone, text, at)?.[0];
  if (year !== undefined) {
    const isPossible = isYear(year.replace("'", ""));
    return isPossible ? { start, end: at + year.length, parts: "month-year", isCompact: false } : undefined;
  }
  const day = match(afterMonth, text, at);
  if (!day || !isDay(day[1])) return undefined;
  const [all, , yearOfDay] = day;
  const hasYear = yearOfDay !== undefined && (yearOfDay.length === 2 || isYear(yearOfDay));
  const length = hasYear ? all.length : (day[1]?.length ?? 0);
  return { start, end: at + length, parts: hasYear ? "full" : "month-day", isCompact: false };
}

/** Where the name of a month that ends right before `at` begins. */
function monthBefore(text: string, at: number): number | undefined {
  let end = at;
  while (at - end < MAX_MONTH_GAP && / |[.,/'-]/.test(text[end - 1] ?? "")) end -= 1;
  if (/[\d\s]/.test(text[end - 1] ?? " ")) return undefined;
  const named = /(\p{L}{3,12})\.?(?: the)?$/u.exec(text.slice(Math.max(0, end - MAX_MONTH), end));
  return named && monthOf(named[1] ?? "") !== undefined ? end - named[0].length : undefined;
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

const full = (start: number, length: number) =>
  ({ start, end: start + length, parts: "full", isCompact: false }) as const;
const isYear = (year = "") => Number(year) >= FIRST_YEAR && Number(year) <= LAST_YEAR;
const isMonth = (month = "") => Number(month) >= 1 && Number(month) <= 12;
const isDay = (day = "") => Number(day) >= 1 && Number(day) <= 31;
