import { tryParseJson } from "../../lib/try-parse-json.ts";

/** Longest answer that counts as one of a few possible ones: a number, a name, a choice. */
const MAX_WORDS = 8;
const MAX_CHARACTERS = 60;
/** A text this short is the answer itself. */
const SHORT_TEXT_WORDS = 5;

const statedAnswer =
  /(?:^|[\n.:*_>(\s])(?:(?:final|correct|my|the) )*answer\**(?: is| would be| =|:)\**:?[ \t]*(?:\n+)?([^\n]+)/gi;

/**
 * The final answer that a text states, in a form in which equal answers are equal: after "Answer:", in `\boxed{}`, after
 * "####", in the field `answer` of a JSON object, or the whole of a very short text. Undefined for prose without one.
 */
export function discreteAnswer(text: string): string | undefined {
  const stated =
    asAnswer(readJson(text)?.answer) ?? lastOf(text, /\\boxed\{([^{}]+)\}/g) ?? lastOf(text, /####[ \t]*([^\n]+)/g);
  if (stated !== undefined) return toDiscrete(stated);
  const said = lastOf(text, statedAnswer);
  if (said !== undefined) return toDiscrete(firstSentence(said));
  const whole = text.trim();
  return whole.split(/\s+/).length <= SHORT_TEXT_WORDS && !whole.includes("\n") ? toDiscrete(whole) : undefined;
}

/** The first JSON object in a text, however it is wrapped; undefined when there is none. */
export function readJson(text: string): Record<string, unknown> | undefined {
  const from = text.indexOf("{");
  const to = text.lastIndexOf("}");
  if (from < 0 || to < from) return undefined;
  const value = tryParseJson(text.slice(from, to + 1)); // often only nearly JSON; the caller reads it as prose then
  return typeof value === "object" && value !== null ? { ...value } : undefined;
}

/** An answer that a field of a JSON object gives; undefined for a list or an object. */
export function asAnswer(value: unknown): string | undefined {
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
}

function lastOf(text: string, pattern: RegExp): string | undefined {
  return [...text.matchAll(pattern)].at(-1)?.[1];
}

function firstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/.exec(text)?.[0] ?? text;
}

function toDiscrete(text: string): string | undefined {
  const plain = text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[*_`"'\u201c\u201d\u2018\u2019$\u20ac\u00a3]/g, "")
    .replace(/\s+/g, " ")
    .replace(/^[\s:([{]+|[\s.,;:!?)\]}]+$/g, "")
    .replace(/^(?:the|an?) /, "");
  if (plain === "" || plain.length > MAX_CHARACTERS || plain.split(" ").length > MAX_WORDS) return undefined;
  const choice = /^\(?([a-h])[).:](?:\s|$)/.exec(`${plain}${plain.length === 1 ? "." : ""}`)?.[1];
  if (choice !== undefined) return choice;
  const number = plain.replace(/(?<=\d),(?=\d{3}(?!\d))/g, "");
  return /^-?\d+(?:\.\d+)?$/.test(number) ? String(Number(number)) : plain;
}

/** Words of a text in one form, to compare two texts. */
export function normalise(text: string): string {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.join(" ") ?? ""
  );
}
