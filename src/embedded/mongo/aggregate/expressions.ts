import { type Document, getField, isDocument, setField, typeName } from "../bson/bson-types.ts";
import { located, notOffered, typeMismatch } from "../command-error.ts";

/** What an expression is evaluated against: the document and one clock. */
export type EvaluationContext = { readonly root: Document; readonly now: Date };

/** A compiled expression. Its value is undefined where MongoDB's is missing. */
export type Expression = (context: EvaluationContext) => unknown;

/** Every expression operator that this server has, on the values of its operands: what is not here is refused. */
export const expressionOperators: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  $add: add,
  $concatArrays: concatArrays,
  $ifNull: (values) => values.find((value) => !isNullish(value)) ?? values.at(-1),
  $literal: ([value]) => value,
  $slice: slice,
};

/**
 * Compiles an aggregation expression: an operator, a field's name, `$$NOW`, a document, an array or a constant.
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
    const found = names.join(", ");
    throw located(15983, `an object representing an expression must have exactly one field, found: ${found}`);
  }
  return compileOperator(operator, expression[operator]);
}

function compileOperator(name: string, operand: unknown): Expression {
  const run = Object.hasOwn(expressionOperators, name) ? expressionOperators[name] : undefined;
  if (run === undefined) throw notOffered(name, "InvalidPipelineOperator");
  const operands: readonly unknown[] = Array.isArray(operand) ? operand : [operand];
  if (name === "$ifNull" && operands.length < 2)
    throw located(1257300, `$ifNull needs at least two arguments, had: ${operands.length}`);
  if (name === "$slice" && operands.length !== 2) throw notOffered(`$slice of ${operands.length} arguments`);
  const compiled = name === "$literal" ? [() => operand] : operands.map(compileExpression);
  return (context) => run(compiled.map((part) => part(context)));
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
  if (path === "$$NOW") return ({ now }) => now;
  const name = path.slice(1);
  if (name === "" || name.startsWith("$") || name.includes(".")) throw notOffered(`${path} in an expression`);
  return ({ root }) => getField(root, name);
}

/** Whether a value is null or missing, which most operators answer with null. */
function isNullish(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

function add(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  return values.reduce<number>((sum, value) => {
    if (value instanceof Date) throw notOffered("$add of dates");
    if (typeof value !== "number") throw typeMismatch(`$add only supports numbers, not ${typeName(value)}`);
    return sum + value;
  }, 0);
}

function concatArrays(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  return values.flatMap((value): unknown[] => {
    if (Array.isArray(value)) return value;
    throw located(28664, `$concatArrays only supports arrays, not ${typeName(value)}`);
  });
}

function slice([array, count]: readonly unknown[]): unknown {
  if (isNullish(array) || isNullish(count)) return null;
  if (!Array.isArray(array))
    throw located(28724, `First argument to $slice must be an array, but is of type: ${typeName(array)}`);
  if (typeof count !== "number")
    throw located(28725, `Second argument to $slice must be a number, but is of type: ${typeName(count)}`);
  return count < 0 ? array.slice(count) : array.slice(0, count);
}
