import { isDigit } from "./digits.ts";
import type { Span } from "./spans.ts";

/** Names of the months, folded (lower case, no accents), language by language; abbreviations are their first letters. */
const languages: readonly string[] = [
  "january february march april may june july august september october november december",
  "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
  "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
  "januar februar marz april mai juni juli august september oktober november dezember",
  "janner feber maerz april mai juni juli august september oktober november dezember",
  "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
  "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
  "januari februari maart april mei juni juli augustus september oktober november december",
  "januari februari mrt april mei juni juli augustus september oktober november december",
  "januari februari mars april maj juni juli augusti september oktober november december",
  "januar februar marts april maj juni juli august september oktober november december",
  "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesakuuta heinakuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta",
  "stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia",
  "styczen luty marzec kwiecien maj czerwiec lipiec sierpien wrzesien pazdziernik listopad grudzien",
  "styczniu lutym marcu kwietniu maju czerwcu lipcu sierpniu wrzesniu pazdzierniku listopadzie grudniu",
  "ledna unora brezna dubna kvetna cervna cervence srpna zari rijna listopadu prosince",
  "januara februara marca aprila maja juna jula augusta septembra oktobra novembra decembra",
  "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
  "januar februar marcius aprilis majus junius julius augusztus szeptember oktober november december",
  "ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik",
  "i ii iii iv v vi vii viii ix x xi xii",
  "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
  "сiчня лютого березня квiтня травня червня липня серпня вересня жовтня листопада грудня",
  "ιανουαριου φεβρουαριου μαρτιου απριλιου μαιου ιουνιου ιουλιου αυγουστου σεπτεμβριου οκτωβριου νοεμβριου δεκεμβριου",
  "gener febrer marc abril maig juny juliol agost setembre octubre novembre desembre",
  "januari februari maret april mei juni juli agustus september oktober november desember",
  "जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
  "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
];

const numberOf = new Map<string, number>();
for (const names of languages) {
  for (const [month, name] of names.split(" ").entries()) {
    numberOf.set(name, month + 1);
    const isLatin = /^[a-z]/.test(name);
    // three letters distinguish the months of most languages ("mar"), four the rest ("juil"); the first language wins
    for (const length of isLatin ? [3, 4] : [3]) {
      const short = name.slice(0, length);
      if (!numberOf.has(short)) numberOf.set(short, month + 1);
    }
  }
}

/** Which month, from 1, a folded word or its abbreviation names; undefined for any other word. */
export function monthOf(word: string): number | undefined {
  return numberOf.get(word);
}

/** A date in a text. `parts`: all of it, a month with its year, or a day without a year. */
export type FoundDate = Span & { parts: "full" | "month-year" | "month-day"; isCompact: boolean };

/** No living person was born before, and no record has births after; in years. */
const FIRST_YEAR = 1890;
const LAST_YEAR = 2099;

const yearFirst = /(?<year>\d{4})(?<gap> ?[-/. ] ?)(?<month>\d{1,2})\k<gap>(?<day>\d{1,2})(?!\d|[-/.]\d)/y;
const yearLast = /(\d{1,2})(?: ?([-/. ]) ?)(\d{1,2})(?: ?\2 ?)(\d{4}|\d{2})(?!\d|[-/]\d|\.\d)/y;
const withMarks = /(?<year>\d{4})\s?[年년]\s?(?<month>\d{1,2})\s?[月월]\s?(?<day>\d{1,2})\s?[日일]/y;
/** After a day: "th of march, 1985", ". mars 1985", "-mar-85", "mar1985", " de marzo de 1985". */
const monthAfterDay =
  /\d{1,2}(?:st|nd|rd|th|er|o|\u00ba|\u00aa|\.)?[ ./,-]{0,3}(?:(?:day )?of |de |di |den |d'|(?:the )?)([\p{L}\p{M}]{2,13}|[ivx])\.?(?:[ ./,-]{0,3}(?:(?:de|del|of|do) )?'?(\d{4}|\d{2})(?![\d:]))?/uy;
/** After a month: "march 15th, 1985", "mar-15-1985", "march 1985". */
const afterMonth = /(\d{1,2})(?:st|nd|rd|th)?(?![\d:])(?:[ ,./-]{1,3}'?(\d{4}|\d{2})(?![\d:]))?/y;
const yearAlone = /'?\d{4}(?!\d)/y;
/** What may stand between a month and the day or year after it. */
const MAX_MONTH_GAP = 3;
const MAX_MONTH = 13;
/** What may link a month with the number after it: "March the 15th", "marzo de 1985". */
const linkBefore = /(?:\.? the| del?| do| of)$/;
const MAX_LINK = 5;

/** The date in a folded text that begins with the digits at `at`, or the month's name right before them, if there is one. */
export function dateAt(text: string, at: number): FoundDate | undefined {
  let length = 0;
  while (length < 9 && isDigit(text.charCodeAt(at + length))) length += 1;
  if (length === 6 || length === 8) return compactDate(text, at, length);
  const digits = text.slice(at, at + length);
  if (length === 4) return isYear(digits) ? (dateFromYear(text, at) ?? dateFromMonth(text, at)) : undefined;
  if (length > 2 || !isDay(digits)) return undefined;
  return dateFromDay(text, at, length) ?? dateFromMonth(text, at);
}

function compactDate(text: string, at: number, length: number): FoundDate | undefined {
  const isLonger = text[at + length] === "-";
  const isDate = !isLonger && isCompactDate(text.slice(at, at + length));
  return isDate ? { ...toDate(at, at + length), isCompact: true } : undefined;
}

/** "1985-03-12", "1985年3月12日". */
function dateFromYear(text: string, at: number): FoundDate | undefined {
  const found = match(yearFirst, text, at) ?? match(withMarks, text, at);
  const { year, month, day } = found?.groups ?? {};
  return found && isYear(year) && isMonth(month) && isDay(day) ? toDate(at, at + found[0].length) : undefined;
}

/** "3/12/85" in either order, "12 March 1985", "12 March". */
function dateFromDay(text: string, at: number, length: number): FoundDate | undefined {
  const last = "-/. ".includes(text[at + length] ?? "\n") ? match(yearLast, text, at) : null;
  if (last) {
    const [all, a, , b, year = ""] = last;
    if (isDayAndMonth(a, b) && isYearOrShort(year)) return toDate(at, at + all.length);
  }
  const named = match(monthAfterDay, text, at);
  if (!named || monthOf(named[1] ?? "") === undefined) return undefined;
  const [all, , year] = named;
  if (year === undefined) return toDate(at, at + all.length, "month-day");
  return isYearOrShort(year) ? toDate(at, at + all.length) : undefined;
}

function isCompactDate(digits: string): boolean {
  const [a, b, c] = [digits.slice(0, 2), digits.slice(2, 4), digits.slice(4)];
  if (digits.length === 6) return isDayAndMonth(a, b) || (isMonth(b) && isDay(c));
  const isYearFirst = isYear(digits.slice(0, 4)) && isMonth(digits.slice(4, 6)) && isDay(digits.slice(6));
  return isYearFirst || (isDayAndMonth(a, b) && isYear(c));
}

/** "March 12, 1985", "March 12", "March 1985", from the number after the month. */
function dateFromMonth(text: string, at: number): FoundDate | undefined {
  const start = monthBefore(text, at);
  if (start === undefined) return undefined;
  const alone = match(yearAlone, text, at)?.[0];
  if (alone !== undefined) {
    return isYear(alone.replace("'", "")) ? toDate(start, at + alone.length, "month-year") : undefined;
  }
  const [all = "", day = "", year = ""] = match(afterMonth, text, at) ?? [];
  if (!isDay(day)) return undefined;
  return isYearOrShort(year) ? toDate(start, at + all.length) : toDate(start, at + day.length, "month-day");
}

/** Where the name of a month that ends right before `at` begins. */
function monthBefore(text: string, at: number): number | undefined {
  let end = at;
  while (at - end < MAX_MONTH_GAP && " .,/'-".includes(text[end - 1] ?? "\n")) end -= 1;
  const link = linkBefore.exec(text.slice(Math.max(0, end - MAX_LINK), end));
  if (link) end -= link[0].length;
  let start = end;
  while (end - start <= MAX_MONTH && isLetter(text.charCodeAt(start - 1))) start -= 1;
  if (end - start < 2 || end - start > MAX_MONTH) return undefined;
  return monthOf(text.slice(start, end)) === undefined ? undefined : start;
}

/** A letter of a folded text, or a mark of a script that has them; punctuation beyond ASCII is neither. */
const isLetter = (unit: number) =>
  (unit >= 97 && unit <= 122) || (unit >= 0xaa && unit < 0x2000) || (unit > 0x3040 && unit < 0xfe00);

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

const toDate = (start: number, end: number, parts: FoundDate["parts"] = "full"): FoundDate => {
  return { start, end, parts, isCompact: false };
};
const isYear = (year = "") => Number(year) >= FIRST_YEAR && Number(year) <= LAST_YEAR;
const isYearOrShort = (year: string) => year.length === 2 || isYear(year);
const isMonth = (month = "") => Number(month) >= 1 && Number(month) <= 12;
const isDay = (day = "") => Number(day) >= 1 && Number(day) <= 31;
/** In either order. */
const isDayAndMonth = (a = "", b = "") => (isDay(a) && isMonth(b)) || (isMonth(a) && isDay(b));
