import { dateAt } from "./dates.ts";
import { groupsNear, isDigit, separatorsOf } from "./digits.ts";
import type { GuardText } from "./guard-text.ts";
import { findLabels, type Labels, type Nearness } from "./labels.ts";
import { findSpans, lastEndingBefore, type Span } from "./spans.ts";

/** Labels of an identifier, and what their values must have at least. */
export type IdRule = {
  labels: RegExp;
  /** Letters and digits of a value right after its label. */
  minDirect: number;
  /** Digits of a value that other words part from its label. */
  minNear: number;
};

/** Characters of the longest identifier that is looked at. */
const MAX_ID = 40;
const MAX_LOOK_BACK = 20;
/** Digits of a number whose groups more than small separators part. */
const MIN_PARTED = 6;
const MAX_PARTED = 16;
/** A number with one of these is an amount, an age, a time or a place in a list. */
const unit =
  /^(?:-| |\.)?(?:%|mg|ml|mcg|kg|g|lbs?|cm|mm|m|iu|units?|years?|yrs?|yo|y\/o|months?|weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|times?|x|bpm|mmhg|characters?|chars?|digits?|letters?|numbers?|patients?|people|visits?|records?|rows?|pages?|percent|dollars?|am|pm|st|nd|rd|th|of|and over|beds?|fields?|columns?|entries|cases?|doses?|tablets?|pills?|degrees?|points?|hz|mhz|gb|mb)(?![a-z0-9])/;

/** What a number has after it that counts something. */
const counted =
  /^ ?(?:patients|people|dollars|usd|mg|ml|days|hours|years|times|cases|records|visits|units|steps|charts|points)/;

/** The identifiers that a pattern finds by a word right before them; its group is the identifier. */
export function findBareIds(text: string, pattern: RegExp): Span[] {
  return findSpans(text, pattern).filter(({ end }) => !counted.test(text.slice(end, end + 10)));
}

/** The identifiers in a text that labels name: letters and digits with one digit at least, never a date, time or amount. */
export function findIdValues(source: GuardText, rules: readonly IdRule[]): Span[] {
  return rules.flatMap((rule) => {
    const labels = findLabels(source, rule.labels);
    return labels.spans.length === 0 ? [] : [...findByLabels(source, labels, rule), ...findParted(source, labels)];
  });
}

function findByLabels({ text, digits }: GuardText, labels: Labels, rule: IdRule): Span[] {
  const found: Span[] = [];
  let done = 0;
  for (const group of groupsNear(digits, labels.spans)) {
    if (group.start < done) continue;
    const span = idAround(text, group, labels.spans);
    done = span.end;
    const size = sizeOf(text, span);
    if (size.all < rule.minDirect && size.digits < rule.minNear) continue;
    const nearness = labels.nearness(span);
    const isLongEnough = nearness === "direct" ? size.all >= rule.minDirect : size.digits >= rule.minNear;
    if (nearness !== undefined && isLongEnough && isIdentifier(text, span, nearness)) found.push(span);
  }
  return found;
}

/** Numbers right after a label whose groups blanks, cells or markup part: "MRN 44 55 66". */
function findParted({ text, digits }: GuardText, labels: Labels): Span[] {
  return digits.runs(MIN_PARTED).filter((run) => {
    if (run.groups.length < 2 || run.length > MAX_PARTED || labels.nearness(run) !== "direct") return false;
    if (separatorsOf(text, run.groups).some((one) => /[,.:/\n]/.test(one))) return false;
    return dateAt(text, run.start) === undefined && !unit.test(text.slice(run.end, run.end + 14));
  });
}

/** The word of letters, digits and small separators that a group of digits belongs to, a label that is glued to it left out. */
function idAround(text: string, group: Span, labels: readonly Span[]): Span {
  let start = group.start;
  while (start > 0 && group.start - start < MAX_LOOK_BACK && isOfId(text.charCodeAt(start - 1))) start -= 1;
  const glued = labels[lastEndingBefore(labels, group.start)];
  if (glued && glued.end > start) start = glued.end;
  while (start < group.start && !isLetterOrDigit(text.charCodeAt(start))) start += 1;
  let end = group.end;
  while (end - start < MAX_ID && isOfId(text.charCodeAt(end))) end += 1;
  while (end > group.end && !isLetterOrDigit(text.charCodeAt(end - 1))) end -= 1;
  return { start, end };
}

/** Values that are amounts, counts or ages by themselves, and those that what follows makes a time or an amount. */
const amount =
  /^\d{1,4}\.\d{1,2}$|^\d{1,3}\/\d{1,3}$|^\d{1,3}-(?:year|month|week|day|hour|minute)|^\d+(?:st|nd|rd|th|mg|ml|mcg|kg|g|cm|mm|am|pm|yo|x|%)$/;
const timeOrAmount = /^:\d|^,\d{3}(?!\d)/;
const currency = /[$\u20ac\u00a3] ?$/;

/** How many letters and digits a word has, and how many digits. */
function sizeOf(text: string, { start, end }: Span) {
  const size = { all: 0, digits: 0 };
  for (let at = start; at < end; at += 1) {
    const unit = text.charCodeAt(at);
    if (isLetterOrDigit(unit)) size.all += 1;
    if (isDigit(unit)) size.digits += 1;
  }
  return size;
}

function isIdentifier(text: string, { start, end }: Span, nearness: Nearness): boolean {
  const word = text.slice(start, end);
  const after = text.slice(end, end + 14);
  if (timeOrAmount.test(after) || unit.test(after) || amount.test(word)) return false;
  if (currency.test(text.slice(Math.max(0, start - 2), start))) return false;
  const date = dateAt(text, start);
  if (date && !date.isCompact && date.parts === "full") return false;
  if (nearness === "direct") return !(date && date.parts !== "full");
  return !/^(?:19|20)\d\d$/.test(word) && !(date && !date.isCompact);
}

const isLetterOrDigit = (unit: number) => (unit >= 97 && unit <= 122) || isDigit(unit);
/** A letter, a digit, or one of `_/.-`. */
const isOfId = (unit: number) => isLetterOrDigit(unit) || unit === 95 || (unit >= 45 && unit <= 47);
