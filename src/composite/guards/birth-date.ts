import { dateAt, type FoundDate } from "./dates.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, labelPattern } from "./labels.ts";
import { findSpans, isWithinReach, type Span } from "./spans.ts";

const labels = labelPattern(
  "dobs?|d\\.o\\.b\\.?|d[ /]o[ /]b|d\\.?o\\.? ?birth",
  "dates?[ _.-]{0,2}of[ _.-]{0,2}birth",
  "birth[ _.-]{0,2}(?:date|day)s?|b-?day",
  "births?(?= ?[:=])",
  "born",
  "(?:fecha|data|date|lieu et date)[ _-]?(?:de|del|di|do|da)? ?(?:nacimiento|nascimento|naissance|nascita|nac)",
  "nacid[oa]|nacio|nascid[oa]|nasceu|nat[oa] (?:il|a)|nee? (?:le|a)|naissance|nacimiento|nascita|nascimento",
  "geburts(?:datum|tag)|geboren|geb(?=[ .:])|geboortedatum|gebdat",
  "fodt|fodsels(?:dato|dag)|fodelse(?:datum|dag)|fodd|syntyma(?:aika|paiva)|syntynyt",
  "data urodzenia|urodzon[ya]|ur\\.|datum narozeni|narozen[ya]?|datum rodenia|datum rodenja|roden[ao]?|data nasterii|nascut[a]?|szuletesi datum|szuletett",
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
/** HL7 version 2, field 7 of a PID segment. */
const hl7 = /(?<![a-z])pid\|(?:[^|\n]{0,120}\|){6}(?=\d{8})/g;

/** Dates of birth: a date, or a month with its day or year, that words of birth name; a year alone tells too little (HIPAA). */
export function findBirthDates(text: GuardText): Span[] {
  const named = findLabels(text, labels, otherScripts, shortBorn);
  const inRecords = [...text.text.matchAll(hl7)].map((match) => {
    const start = match.index + match[0].length;
    return { start, end: start + 8 };
  });
  if (named.spans.length === 0) return inRecords;
  const others = findSpans(text.text, otherDates);
  const found: Span[] = [...inRecords];
  let done = 0;
  const { starts, ends } = text.digits;
  for (let index = 0; index < starts.length; index += 1) {
    const group = { start: starts[index] ?? 0, end: ends[index] ?? 0 };
    if (group.start < done || !isWithinReach(named.spans, group)) continue;
    const date = dateAt(text.text, group.start);
    if (!date || !isBirthDate(named, date, others)) continue;
    found.push({ start: date.start, end: date.end });
    done = date.end;
  }
  return found;
}

function isBirthDate(named: Labels, date: FoundDate, others: readonly Span[]): boolean {
  const nearness = named.nearness(date, others);
  return nearness === "direct" || (nearness === "near" && !(date.isCompact && date.end - date.start === 6));
}
