import { type Expression, ExpressionProblem, parseExpression, type Scope } from "./expressions.ts";

/** A text that may hold `{{ expression }}`. */
export type Template = {
  stepIds: readonly string[];
  /** The text with the values in it. @throws ExpressionProblem when one has none. */
  fillText(scope: Scope): string;
  /** As `fillText`, but a template that is one expression and nothing else keeps its value's type. */
  fillValue(scope: Scope): unknown;
};

type Part = string | Expression;

/** @throws ExpressionProblem, its position counted in the whole text. */
export function parseTemplate(text: string): Template {
  const parts: Part[] = [];
  let at = 0;
  for (;;) {
    const begin = text.indexOf("{{", at);
    if (begin < 0) break;
    const end = findEnd(text, begin + 2);
    if (end < 0) throw new ExpressionProblem("A {{ has no }} after it.", begin);
    if (begin > at) parts.push(text.slice(at, begin));
    parts.push(parseAt(text.slice(begin + 2, end), begin + 2));
    at = end + 2;
  }
  if (at < text.length) parts.push(text.slice(at));
  const [only, second] = parts;
  const fillText = (scope: Scope) =>
    parts.map((part) => (typeof part === "string" ? part : asText(part.evaluate(scope)))).join("");
  return {
    stepIds: parts.flatMap((part) => (typeof part === "string" ? [] : part.stepIds)),
    fillText,
    fillValue: (scope) =>
      second === undefined && only !== undefined && typeof only !== "string" ? only.evaluate(scope) : fillText(scope),
  };
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

function parseAt(text: string, offset: number): Expression {
  try {
    return parseExpression(text.trim());
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
