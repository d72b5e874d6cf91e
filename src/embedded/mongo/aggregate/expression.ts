import { type Document, getField, isDocument, setField } from "../bson/bson-types.ts";
import { located, notOffered } from "../command-error.ts";
import { type Expression, expressionOperators } from "./expression-operators.ts";

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
  const name = path.slice(1);
  if (name.startsWith("$") || name.includes(".")) throw notOffered(`${path} in an expression`);
  if (name === "") throw located(16872, "'$' by itself is not a valid FieldPath");
  return ({ root }) => getField(root, name);
}
