import { LRUCache } from "lru-cache";
import type { Room } from "./cel-values.ts";
import { type Expression, ExpressionProblem, parseExpression, parseRule, type Scope } from "./expressions.ts";

/** Expressions in one text. */
const MAX_EXPRESSIONS = 100;

type Part = string | Expression;

/** A text that may hold `{{ expression }}`. @throws ExpressionProblem, its position counted in the whole text. */
export function parseTemplate(text: string, names: readonly string[] = []) {
  const parts = toParts(text, names);
  const [only, second] = parts.filter((part) => typeof part !== "string" || part.trim() !== "");
  /** The text with the values in it. @throws ExpressionProblem when one has none. */
  const fillText = (scope: Scope, room: Room) =>
    parts.map((part) => (typeof part === "string" ? part : asText(part.evaluate(scope, room)))).join("");
  /** As `fillText`, but a template that is one expression, and blanks around it at most, keeps its value's type. */
  const fillValue = (scope: Scope, room: Room): unknown =>
    typeof only === "object" && second === undefined ? only.evaluate(scope, room) : fillText(scope, room);
  /** As `fillText`, with the values encoded for where in a URL they stand. */
  const fillUrl = (scope: Scope, room: Room): string =>
    joinUrl(
      parts.map((part) =>
        typeof part === "string"
          ? { text: part, isValue: false }
          : { text: asText(part.evaluate(scope, room)), isValue: true },
      ),
    );
  return { expressions: parts.filter((part) => typeof part !== "string"), fillText, fillValue, fillUrl };
}

function toParts(text: string, names: readonly string[]): Part[] {
  const parts: Part[] = [];
  let count = 0;
  let at = 0;
  for (;;) {
    const begin = text.indexOf("{{", at);
    if (begin < 0) break;
    count += 1;
    if (count > MAX_EXPRESSIONS) throw new ExpressionProblem(`It has more than ${MAX_EXPRESSIONS} expressions.`, begin);
    const end = findEnd(text, begin + 2);
    if (end < 0) throw new ExpressionProblem("A {{ has no }} after it.", begin);
    if (begin > at) parts.push(text.slice(at, begin));
    parts.push(parseAt(text.slice(begin + 2, end), begin + 2, names));
    at = end + 2;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

/** Where an expression's `}}` is: one within a string of the expression, or that closes its maps, is none. */
function findEnd(text: string, from: number): number {
  let quote = "";
  let open = 0;
  for (let at = from; at < text.length; at += 1) {
    const sign = text[at];
    if (quote !== "") {
      if (sign === "\\") at += 1;
      else if (sign === quote) quote = "";
    } else if (sign === '"' || sign === "'") quote = sign;
    else if (sign === "{") open += 1;
    else if (sign === "}" && open > 0) open -= 1;
    else if (sign === "}" && text[at + 1] === "}") return at;
  }
  return -1;
}

function parseAt(text: string, offset: number, names: readonly string[]): Expression {
  try {
    return parseExpression(text.trim(), names);
  } catch (error) {
    if (!(error instanceof ExpressionProblem)) throw error;
    const blanks = text.length - text.trimStart().length;
    throw new ExpressionProblem(error.message, offset + blanks + error.position);
  }
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Characters of texts whose parsed form is kept; a parsed text takes many times its length. */
const MAX_KEPT = 300_000;
/** The same of texts that see the item of a list, for each set of names; and how many of these are kept. */
const MAX_KEPT_OF_NAMES = 50_000;
const MAX_NAMES = 8;

export type ParsedTexts = ReturnType<typeof makeParsedTexts>;

/**
 * Parses each text once, for as long as it is kept; `known` does not parse. `within`: the same for texts that see further names.
 * Throws as `parseTemplate` and `parseExpression`.
 */
export function makeParsedTexts() {
  const base = {
    template: keepParsed(parseTemplate, MAX_KEPT),
    condition: keepParsed(parseExpression, MAX_KEPT),
    rule: keepParsed(parseRule, MAX_KEPT),
  };
  const others = new LRUCache<string, typeof base>({ max: MAX_NAMES });
  const parseWith = (names: readonly string[]): typeof base => ({
    template: keepParsed((text) => parseTemplate(text, names), MAX_KEPT_OF_NAMES),
    condition: keepParsed((text) => parseExpression(text, names), MAX_KEPT_OF_NAMES),
    rule: base.rule,
  });
  return {
    ...base,
    within(names: readonly string[]): typeof base {
      if (names.length === 0) return base;
      const key = names.join(" ");
      const found = others.get(key) ?? parseWith(names);
      others.set(key, found);
      return found;
    },
  };
}

function keepParsed<T extends object>(parse: (text: string) => T, maxSize: number) {
  const kept = new LRUCache<string, T>({ maxSize, sizeCalculation: (_, text) => text.length + 1 });
  const parseOnce = (text: string): T => {
    const found = kept.get(text) ?? parse(text);
    kept.set(text, found);
    return found;
  };
  return Object.assign(parseOnce, { known: (text: string) => kept.get(text) });
}

/** Where in a URL a value stands. */
type Place = "host" | "path" | "query";

const namePart = /^[A-Za-z0-9_-]+$/;
const wholeHost = /^[A-Za-z0-9_.-]+(:\d{1,5})?$/;
/** A segment that a URL parser removes, with the one before it. */
const dots = /^(\.|%2e){1,2}$/i;

/** A part of a template: what its author has written, or the value of an expression. */
type UrlPart = { text: string; isValue: boolean };

/**
 * A URL of texts and values. A value is encoded for where it stands, so that it is one segment of the path or one part of the
 * query, and never changes the host or the depth of the path. A value at its very start, as a whole URL, stays as it is.
 * @throws ExpressionProblem for a value that cannot stand where it does.
 */
function joinUrl(parts: readonly UrlPart[]): string {
  let url = "";
  let written = ""; // the same without values: they are no syntax
  for (const [index, { text, isValue }] of parts.entries()) {
    if (!isValue || url.trim() === "") {
      url += text;
      written += text;
      continue;
    }
    url += encode(text, { place: placeAfter(written), before: written, after: parts[index + 1]?.text ?? "" });
    written += "x";
  }
  rejectDots(url, parts);
  return url;
}

function placeAfter(before: string): Place {
  if (/[?#]/.test(before)) return "query";
  return /^\s*[a-z][a-z0-9+.-]*:\/\/[^/\\]*$/i.test(before) ? "host" : "path";
}

function encode(value: string, { place, before, after }: { place: Place; before: string; after: string }): string {
  if (place !== "host") {
    const isSegment = place === "path" && before.endsWith("/") && /^([/?#]|$)/.test(after);
    if (isSegment && value === "")
      throw new ExpressionProblem("The value is empty, where a segment of the path is.", 0);
    return encodeURIComponent(value.toWellFormed());
  }
  const isWhole = before.endsWith("//") && /^([:/?#]|$)/.test(after);
  if ((isWhole ? wholeHost : namePart).test(value)) return value;
  throw new ExpressionProblem("The value is no part of a host name: it has letters, digits, - and _ alone.", 0);
}

/** @throws ExpressionProblem for a segment that is `.` or `..` by a value: it would remove others. */
function rejectDots(url: string, parts: readonly UrlPart[]): void {
  if (!parts.some(({ isValue }, index) => isValue && index > 0)) return;
  const [path = ""] = url.split(/[?#]/, 1);
  if (!path.split("/").some((segment) => dots.test(segment))) return;
  throw new ExpressionProblem("A segment of the path is . or .., which would lead elsewhere.", 0);
}
