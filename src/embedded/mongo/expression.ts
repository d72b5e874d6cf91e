import { getField, isDocument, setField } from "./bson-types.ts";
import type { Document } from "./codec.ts";
import { notOffered } from "./command-error.ts";
import { type EvaluationContext, type Expression, expressionOperators } from "./expression-operators.ts";
import { failedToParse, located } from "./refusals.ts";

/** The context of one document. */
export function rootContext(root: Document, now = new Date()): EvaluationContext {
  return { root, now };
}

/**
 * Compiles an aggregation expression: an operator, a field path, `$$NOW`, a document, an array or a constant.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/
 * @throws CommandError as MongoDB: 168 for an operator that is not offered.
 */
export function compileExpression(expression: unknown): Expression {
  if (typeof expression === "string" && expression.startsWith("$")) return compilePath(expression);
  if (Array.isArray(expression)) {
    const items = expression.map(compileExpression);
    return (context) => items.map((item) => item(context) ?? null);
  }
  if (!isDocument(expression)) return () => expression;
  const names = Object.keys(expression);
  const operator = names.find((name) => name.startsWith("$"));
  if (operator === undefined) return compileObject(expression);
  if (names.length > 1) {
    throw located(
      15983,
      `an object representing an expression must have exactly one field, found: ${names.join(", ")}`,
    );
  }
  const compile = Object.hasOwn(expressionOperators, operator) ? expressionOperators[operator] : undefined;
  if (compile === undefined) throw notOffered(operator, "InvalidPipelineOperator");
  return compile(expression[operator], compileExpression);
}

function compileObject(expression: Document): Expression {
  const fields = Object.keys(expression).map((name) => {
    if (name.includes(".")) throw located(16412, `FieldPath field names may not contain '.': ${name}`);
    return [name, compileExpression(expression[name])] as const;
  });
  return (context) => {
    const object: Document = {};
    for (const [name, field] of fields) {
      const value = field(context);
      if (value !== undefined) setField(object, name, value);
    }
    return object;
  };
}

function compilePath(path: string): Expression {
  if (path === "$$NOW") return ({ now }) => new Date(now);
  if (path.startsWith("$$")) throw notOffered(path, "NotImplemented");
  const parts = parseFieldPath(path.slice(1));
  const [only = ""] = parts;
  if (parts.length === 1) return ({ root }) => getField(root, only);
  return ({ root }) => followPath(root, parts, 0);
}

/** The parts of a field path. */
function parseFieldPath(path: string): string[] {
  const parts = path.split(".");
  if (path === "") throw located(16872, "'$' by itself is not a valid FieldPath");
  if (parts.includes("")) throw failedToParse("FieldPath must not end with a '.' or have empty parts.");
  if (parts.some((part) => part.startsWith("$"))) throw located(16410, "FieldPath field names may not start with '$'.");
  return parts;
}

/** The value at a path: arrays on the way are entered one level, and answer with the array of what their documents have. */
function followPath(value: unknown, parts: readonly string[], at: number): unknown {
  const part = parts[at];
  if (part === undefined) return value;
  if (isDocument(value)) return followPath(getField(value, part), parts, at + 1);
  if (!Array.isArray(value)) return undefined;
  const found: unknown[] = [];
  for (const item of value) {
    const inner = isDocument(item) ? followPath(item, parts, at) : undefined;
    if (inner !== undefined) found.push(inner);
  }
  return found;
}
