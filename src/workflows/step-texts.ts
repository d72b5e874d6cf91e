import { AppError } from "../lib/errors.ts";
import { ExpressionProblem } from "./expressions.ts";

/**
 * A field of a step that may hold expressions: a text, a URL, a value with texts in it, an expression, or one that is true or
 * false; a `rule` is such an expression outside of a step.
 */
export type StepField = {
  at: string;
  value: unknown;
  kind: "text" | "url" | "value" | "expression" | "condition" | "rule" | "rule-value";
};
/** A text of a step, by the place that it has in it, as `body.items[0].name`. */
export type StepText = { at: string; text: string; parsedAs: "template" | "condition" | "rule" };

/** Deepest value of a webhook's body, and texts in it. */
const MAX_BODY_DEPTH = 32;
const MAX_BODY_TEXTS = 1_000;

const parsers: Record<StepField["kind"], StepText["parsedAs"]> = {
  ...{ condition: "condition", expression: "condition", rule: "rule", "rule-value": "rule" },
  ...{ text: "template", url: "template", value: "template" },
};

/** The texts of a field that are expressions or hold some. @throws ExpressionProblem for a value that is too deep or too large. */
export function textsOf({ at, value, kind }: StepField): StepText[] {
  const texts: StepText[] = [];
  const parsedAs = parsers[kind];
  mapTexts(value, at, (text, here) => texts.push({ at: here, text, parsedAs }));
  if (texts.length > MAX_BODY_TEXTS) throw new ExpressionProblem(`It holds more than ${MAX_BODY_TEXTS} texts.`, 0);
  return texts.filter(({ text }) => parsedAs !== "template" || text.includes("{{"));
}

/** A value with each text in it replaced by what `fill` gives for it. @throws ExpressionProblem for a value that is too deep. */
export function mapTexts(value: unknown, at: string, fill: (text: string, at: string) => unknown, depth = 0): unknown {
  if (typeof value === "string") return fill(value, at);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_BODY_DEPTH) throw new ExpressionProblem(`It nests deeper than ${MAX_BODY_DEPTH}.`, 0);
  const inner = (one: unknown, here: string) => mapTexts(one, here, fill, depth + 1);
  if (Array.isArray(value)) return value.map((one, index) => inner(one, `${at}[${index}]`));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inner(one, `${at}.${key}`)]));
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
