import { dateAt, type FoundDate } from "./dates.ts";
import { groupsNear } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import { findSpans, isWithinReach, type Span } from "./spans.ts";

const labels = labelPattern(
  "dobs|d[ ._/-]{0,2}o[ ._/-]{0,2}b\\.?|d\\.?o\\.? ?birth",
  "dates?[ _.-]{0,2}of[ _.-]{0,2}birth",
  "birth[ _.-]{0,2}(?:date|day|time)s?|b-?day",
  "births?(?= ?[:=])",
  "born",
  "(?:fecha|data|date|lieu et date)[ _-]?(?:de|del|di|do|da)? ?(?:nacimiento|nascimento|naissance|nascita|nac|nasc)",
  "nacid[oa]|nacio|nascid[oa]|nasceu|nacque|naissance|nacimiento|nascita|nascimento|nasc(?=[.:])|f(?:echa)?\\.? ?nac(?=[.:])",
  "nat(?:[oa]|o/a)(?: (?:il|a|nel)|(?= l[^a-z]\\d| (?:lune|marte|mercole|giove|vener)di | sabato | domenica ))",
  "n(?:ee?|e\\(e\\)|ee [a-z'-]{2,20})(?: (?:le|a)|(?= (?:en|un) ))|(?:anniversaire|aniversario)(?= ?:)|cumpleanos|compleanno",
  "ddn|d\\.n\\.|(?:dn|fn|f\\.n\\.)(?= ?: ?\\d{1,2}[-./ ])",
  "geburts(?:datum|tag)|(?:in|zu|te) [a-z-]{2,20} geboren|geboren|geb(?=[ .:])|tag der geburt|geburt(?= ?[:=])",
  "geboorte(?:datum|dag)|geb\\.? ?dat(?:um)?|verjaardag",
  "fodt|fodsels(?:dato|dag)|fodelse(?:datum|dag)|fodd|syntyma(?:aika|paiva)|syntynyt|synt(?=[ .:])",
  "data urodzenia|urodz(?:on[ya]|ila?(?: sie)?|iny)|ur\\.|datum narozeni|narozen[ya]?|datum rodenia|datum rodenja|roden[ao]?|data nasterii|nascut[a]?|szuletesi (?:datum|ido|ideje?|hely(?:e)? es ido)|szul(?=[. :])|szuletett",
  "dogum tarihi|dogumlu|ngay sinh|tanggal lahir|lahir",
);
const otherScripts =
  /дата рождения|родил(?:ся|ась)|дата народження|народи(?:вся|лася)|ημερομηνια γεννησης|γεννηθηκε|出生(?:日期|年月日)?|生年月日|生日|생년월일|생일|출생|تاريخ الميلاد|تاريخ الولادة|مواليد|תאריך לידה|जन्म ?(?:तिथि|दिन|तारीख)|วันเกิด/g;
/** "(b. 1985-03-12)": the letter alone, right before its date. */
const shortBorn = /(?<![a-z.])b\.(?= ?(?:\d|[a-z]{3,9}\.? \d))/g;
/** Events that have dates of their own. */
const otherDates = labelPattern(
  "admi(?:tted|ssion|t)|discharged?|visit(?:ed|s)?|appointments?|appt|seen|scheduled|diagnos(?:ed|is)|surgery|operat(?:ed|ion)|since|until|died|deceased|death|dod|expir(?:es|ed|y|ation)|due|effective|follow(?: |-)?up|presented|reported|collected|issued|updated|created|signed|started|prescribed|vaccinat(?:ed|ion)|tested|hired|enrolled|registered|last|next|today|yesterday|encounter|procedure|result|onset|screening|married|moved|founded|opened|launched|released|received|sent|dated|arriv(?:ed|al)|delivery",
);
/** Digits of the shortest date with a year: 1/2/85. */
const MIN_DIGITS = 4;
/** Digits of a date's part in the middle, a day or a month. */
const MAX_MIDDLE = 2;
/** HL7 version 2, field 7 of a PID segment. */
const hl7 = /(?<![a-z])pid\|(?:[^|\n]{0,120}\|){6}(\d{8})/g;

/** Labels that ask for a date, as "born" does not: right after them a date's form is enough, impossible or without a year. */
const asksForDate = /^(?:dob|d[ ./_-]|d\.?o|birth|b-?day|dat|fecha|geb|gebdat)|birth|datum|date|dato|dag$|tarihi/;
const formOfDate =
  /(?:\d{1,4}( ?[-/.] ?)\d{1,2}\1\d{1,4}|\d{1,2}( ?[-/] ?)\d{1,2}|\d\d\.\d\d|\d{8}|\d{6})(?![\d:%]|[-/.,]\d| ?(?:weeks?|days?|months?|years?|hours?|am|pm|kg|g|lbs?|cm)(?![a-z]))/y;

/** Dates of birth: a date, or a month with its day or year, that words of birth name; a year alone reveals too little (HIPAA). */
export function findBirthDates(text: GuardText): Span[] {
  const named = findLabels(text, labels, otherScripts, shortBorn);
  const inRecords = findSpans(text.text, hl7);
  if (named.spans.length === 0) return inRecords;
  const others = text.spans(otherDates);
  const found: Span[] = [...inRecords, ...findParted(text, named, others)];
  let done = 0;
  for (const group of groupsNear(text.digits, named.spans)) {
    if (group.start < done) continue;
    const date = dateAt(text.text, group.start);
    const span = date && isBirthDate(named, date, others) ? date : formAt(text.text, group, named);
    if (!span) continue;
    found.push({ start: span.start, end: span.end });
    done = span.end;
  }
  return found;
}

function isBirthDate(named: Labels, date: FoundDate, others: readonly Span[]): boolean {
  const nearness = named.nearness(date, others);
  return nearness === "direct" || (nearness === "near" && !(date.isCompact && date.end - date.start === 6));
}

/** "DOB: 02/01", "DOB 31/13/1985": what stands where a date is asked for is meant as one. */
function formAt(text: string, { start, end }: Span, named: Labels): Span | undefined {
  formOfDate.lastIndex = start;
  if (!formOfDate.test(text)) return undefined;
  const form = { start, end: formOfDate.lastIndex };
  const isAskedFor = named.nearness({ start, end }) === "direct" && asksForDate.test(named.wordsBefore(form));
  return isAskedFor ? form : undefined;
}

/** Dates right after a label whose parts cells, markup or odd characters part: "DOB | 03 | 12 | 1985". */
function findParted(text: GuardText, named: Labels, others: readonly Span[]): Span[] {
  return text.digits.runs(MIN_DIGITS).flatMap(({ groups }) => {
    const [first, second, third] = groups;
    if (!first || !second || !third || second.end - second.start > MAX_MIDDLE) return [];
    if (!isWithinReach(named.spans, first)) return [];
    const date = groups.slice(0, 3).map(({ start, end }) => text.text.slice(start, end));
    const isDate = dateAt(date.join("-"), 0)?.parts === "full" && named.nearness(first, others) === "direct";
    return isDate ? [{ start: first.start, end: third.end }] : [];
  });
}
