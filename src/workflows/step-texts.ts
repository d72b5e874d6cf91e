import { AppError } from "../errors.ts";
import { ExpressionProblem, parseExpression, type Scope } from "./expressions.ts";
import type { PlannedStep } from "./plan.ts";
import { parseTemplate } from "./templates.ts";

/** A text of a step that holds expressions, by the field that it stands in, as `body.items[0].name`. */
type StepText = { at: string; text: string; isExpression: boolean };

/** Deepest value of a webhook's body, and texts in it. */
const MAX_BODY_DEPTH = 32;
const MAX_BODY_TEXTS = 1_000;

/** Every text of a step that is an expression or may hold some. */
export function textsOf({ step }: PlannedStep): StepText[] {
  const template = (at: string, text: string | undefined): StepText[] =>
    text === undefined ? [] : [{ at, text, isExpression: false }];
  switch (step.type) {
    case "ai_completion":
      return [...template("prompt", step.prompt), ...template("systemPrompt", step.systemPrompt)];
    case "rag_query":
      return template("query", step.query);
    case "human_approval":
      return template("message", step.message);
    case "webhook":
      return [...template("url", step.url), ...textsWithin("body", step.body)];
    case "condition":
      return [{ at: "expression", text: step.expression, isExpression: true }];
    default:
      return step satisfies never;
  }
}

/** @throws ExpressionProblem for a value that is too deep, or holds too many texts. */
function textsWithin(at: string, value: unknown, depth = 0): StepText[] {
  if (typeof value === "string") return [{ at, text: value, isExpression: false }];
  if (typeof value !== "object" || value === null) return [];
  if (depth >= MAX_BODY_DEPTH) throw new ExpressionProblem(`It nests deeper than ${MAX_BODY_DEPTH}.`, 0);
  const texts = Array.isArray(value)
    ? value.flatMap((one, index) => textsWithin(`${at}[${index}]`, one, depth + 1))
    : Object.entries(value).flatMap(([key, one]) => textsWithin(`${at}.${key}`, one, depth + 1));
  if (texts.length > MAX_BODY_TEXTS) throw new ExpressionProblem(`It holds more than ${MAX_BODY_TEXTS} texts.`, 0);
  return texts;
}

/** Ids of the steps that a text names. @throws ExpressionProblem when it cannot be parsed, or is no condition where it must be. */
export function stepIdsIn({ text, isExpression }: StepText): readonly string[] {
  if (!isExpression) return parseTemplate(text).stepIds;
  const { stepIds, mayBeBoolean } = parseExpression(text);
  if (!mayBeBoolean) throw new ExpressionProblem("Its value is neither true nor false.", 0);
  return stepIds;
}

/** A text with its expressions filled in. @throws AppError `invalid_request`; `param` names the field. */
export function fillText(text: string, scope: Scope, param: string): string {
  return inField(param, () => parseTemplate(text).fillText(scope));
}

/** A value with each text in it filled; a text that is one expression and nothing else takes its value. @throws as `fillText`. */
export function fillWithin(value: unknown, scope: Scope, param: string): unknown {
  if (typeof value === "string") return inField(param, () => parseTemplate(value).fillValue(scope));
  if (Array.isArray(value)) return value.map((one, index) => fillWithin(one, scope, `${param}[${index}]`));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([key, one]) => [key, fillWithin(one, scope, `${param}.${key}`)]));
}

/** Says of a problem in which field of the definition it is. @throws AppError `invalid_request`. */
export function inField<T>(param: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ExpressionProblem)) throw error;
    const { message, position } = error;
    throw new AppError("invalid_request", `${message} (at character ${position + 1})`, {
      param,
      details: { position },
    });
  }
}
