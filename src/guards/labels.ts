import type { GuardText } from "./guard-text.ts";
import { lastEndingBefore, type Span } from "./spans.ts";

/** How sure it is that a label names a value: `direct` when only filler stands between, `near` otherwise. */
export type Nearness = "direct" | "near";

/** Characters and words that a label may stand before its value. */
const BEFORE = 60;
const MAX_WORDS_BEFORE = 9;
/** Characters after the end of a sentence in which a label of the one before still holds: "your SSN? It is …". */
const AFTER_SENTENCE = 30;
/** Characters that a label may stand after its value: "123456789 is my SSN". */
const AFTER = 34;

/** Markup between a label and its value is ignored. */
const tag = /<\/?[a-z][^<>]{0,40}>/g;
/** "Not an SSN: 000-12-3456" */
const denial = /(?<![a-z])(?:not|never|isn't|no)(?: (?:an?|the|any|my|his|her|their|valid|real|actual)){0,2} ?$/;
const DENIAL_REACH = 24;

const fillers =
  "is|are|was|be|being|reads|equals|a|an|the|my|mine|his|her|hers|their|our|your|its|it|s|this|that|number|numbers|no|nos|num|nr|nbr|n|id|identifier|identification|code|value|field|of|for|as|on|file|here|to|with|and|which|patient|client|customer|member|person|applicant|currently|listed|given|following|follows|below|xml|string|int|text|num|o|es|el|la|de|del|est|le|ist|die|der|numero|nummer|nro|e|il|di|do|da";
const onlyFillers = new RegExp(`^[^a-z0-9]*(?:(?:${fillers})(?:[^a-z0-9]+|$))*$`);
const afterFillers =
  /^ ?[("'[/:=-]{0,3} ?(?:(?:is|was|as|being|the|my|his|her|their|your|our|a|an|for|of|to|be|listed|patient|patient's|client's|s|'|number|valid|real|full) ?){0,5}["'(]?$/;
const sentenceEnd = /[.!?;](?=\s)|\n\s*\n/;
/** A label with a value of its own right after it does not name the one before it. */
const ownValue = /^[\s"')]*(?:(?:number|no|num|nr|id)[\s.]*)?(?:[:=#]|is |was |\d)/;

/** A search for whole words in a folded text: the pattern must not touch a letter on either side. */
export function labelPattern(...alternatives: readonly string[]): RegExp {
  return new RegExp(`(?<![a-z])(?:${alternatives.join("|")})(?![a-z])`, "g");
}

export type Labels = ReturnType<typeof findLabels>;

/** Finds the labels of global patterns, and which values they name. */
export function findLabels(text: GuardText, ...patterns: readonly RegExp[]) {
  const spans = patterns.flatMap((pattern) => text.spans(pattern)).sort((a, b) => a.start - b.start);
  const labelBefore = ({ start }: Span) => spans[lastEndingBefore(spans, start)];
  return {
    spans,
    /** How a label of these names the value at `span`; undefined when none does. `others` are words that break the bond. */
    nearness(span: Span, others?: readonly Span[]): Nearness | undefined {
      const index = lastEndingBefore(spans, span.start);
      const [before, after] = [spans[index], spans[index + 1]];
      const isNearBefore = before !== undefined && span.start - before.end <= BEFORE;
      const isNearAfter = after !== undefined && after.start >= span.end && after.start - span.end <= AFTER;
      if (!isNearBefore && !isNearAfter) return undefined;
      const breaking = others ?? text.otherLabels;
      const other = breaking[lastEndingBefore(breaking, span.start)];
      const found = isNearBefore ? nearnessBefore(text.text, { label: before, other, span }) : undefined;
      return found ?? (isNearAfter ? nearnessAfter(text.text, { label: after, other, span }) : undefined);
    },
    /** The label before a value, as the folded text has it; empty when there is none. */
    wordsBefore(span: Span): string {
      const label = labelBefore(span);
      return label ? text.text.slice(label.start, label.end) : "";
    },
    /** Whether the label before a value is denied: it names what the value is not. */
    isDenied(span: Span): boolean {
      const { start } = labelBefore(span) ?? { start: 0 };
      return denial.test(text.text.slice(Math.max(0, start - DENIAL_REACH), start));
    },
  };
}

type Pair = { label: Span; other: Span | undefined; span: Span };

function nearnessBefore(text: string, { label, other, span }: Pair): Nearness | undefined {
  if (other && other.start >= label.end) return undefined;
  const between = text.slice(label.end, span.start);
  const gap = between.includes("<") ? between.replace(tag, " ") : between;
  if (onlyFillers.test(gap)) return "direct";
  if (gap.length <= AFTER_SENTENCE) return wordsIn(gap) > MAX_WORDS_BEFORE ? undefined : "near";
  const sentence = gap.split(sentenceEnd).at(-1) ?? "";
  const isOfSentence = sentence.length === gap.length || sentence.length <= AFTER_SENTENCE;
  return isOfSentence && wordsIn(gap) <= MAX_WORDS_BEFORE ? "near" : undefined;
}

function wordsIn(text: string): number {
  return text.length <= 2 * MAX_WORDS_BEFORE ? 0 : (text.match(/[a-z]+/g)?.length ?? 0);
}

function nearnessAfter(text: string, { label, other, span }: Pair): Nearness | undefined {
  if (!afterFillers.test(text.slice(span.end, label.start))) return undefined;
  if (ownValue.test(text.slice(label.end, label.end + 24))) return undefined;
  const isTaken =
    other !== undefined && onlyFillers.test(text.slice(other.end, span.start)) && span.start - other.end < 20;
  return isTaken ? undefined : "near";
}
