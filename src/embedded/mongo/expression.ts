import type { Document } from "bson";
import { bsonTag, getField, isDocument, setField } from "./bson-types.ts";
import { commandError, notImplemented } from "./command-error.ts";
import type { CompileOperand, Expression, OperatorTable } from "./expression-arguments.ts";
import { arithmeticOperators } from "./expression-arithmetic.ts";
import { arrayOperators } from "./expression-arrays.ts";
import { dateOperators } from "./expression-dates.ts";
import { logicOperators } from "./expression-logic.ts";
import { objectOperators } from "./expression-objects.ts";
import { setOperators } from "./expression-sets.ts";
import { stringOperators } from "./expression-strings.ts";
import { typeOperators } from "./expression-types.ts";
import { failedToParse, located } from "./refusals.ts";

/** Every expression operator that this server has: what is not here is refused. */
const operators: OperatorTable = {
  ...logicOperators,
  ...arithmeticOperators,
  ...stringOperators,
  ...arrayOperators,
  ...setOperators,
  ...objectOperators,
  ...typeOperators,
  ...dateOperators,
};

/** Operators of MongoDB that are left out on purpose; any other name is unknown to MongoDB as well. */
const leftOut = new Set(
  "$accumulator $function $binarySize $bsonSize $bitAnd $bitOr $bitXor $bitNot $tsIncrement $tsSecond $toHashedIndexKey $toUUID $sampleRate $median $percentile $stdDevPop $stdDevSamp $denseRank $rank $derivative $integral $locf $linearFill $shift $expMovingAvg $documentNumber $covariancePop $covarianceSamp".split(
    " ",
  ),
);

const systemVariables = new Set(["ROOT", "CURRENT", "REMOVE", "NOW"]);

/**
 * Compiles an aggregation expression. `variables` are the names in scope besides the system's.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/
 * @throws CommandError as MongoDB: 168 for an unknown operator, 17276 for an unknown variable.
 */
export function compileExpression(expression: unknown, variables: readonly string[] = []): Expression {
  if (typeof expression === "string" && expression.startsWith("$")) return compilePath(expression, variables);
  if (Array.isArray(expression)) {
    const items = expression.map((item: unknown) => compileExpression(item, variables));
    return (context) => items.map((item) => item(context) ?? null);
  }
  if (!isDocument(expression) || bsonTag(expression) !== undefined) return () => expression;
  const names = Object.keys(expression);
  const operator = names.find((name) => name.startsWith("$"));
  if (operator === undefined) return compileObject(expression, variables);
  if (names.length > 1) {
    throw located(
      15983,
      `an object representing an expression must have exactly one field, found: ${names.join(", ")}`,
    );
  }
  return compileOperator(operator, expression[operator], variables);
}

function compileOperator(name: string, operand: unknown, variables: readonly string[]): Expression {
  const compileOperand: CompileOperand = (part, added = []) =>
    compileExpression(part, added.length === 0 ? variables : [...variables, ...added]);
  const compiler = Object.hasOwn(operators, name) ? operators[name] : undefined;
  if (compiler !== undefined) return compiler(operand, compileOperand, name);
  throw leftOut.has(name)
    ? notImplemented(name)
    : commandError("InvalidPipelineOperator", `Unrecognized expression '${name}'`);
}

function compileObject(expression: Document, variables: readonly string[]): Expression {
  const fields = Object.keys(expression).map((name) => {
    if (name.includes(".")) throw located(16412, `FieldPath field names may not contain '.': ${name}`);
    return [name, compileExpression(expression[name], variables)] as const;
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

function compilePath(path: string, variables: readonly string[]): Expression {
  if (!path.startsWith("$$")) return fieldPath(parseFieldPath(path.slice(1)));
  const [name = "", ...parts] = path.slice(2).split(".");
  if (name === "") throw failedToParse("empty variable names are not allowed");
  if (variables.includes(name)) return (context) => followPath(context.variables[name], parts, 0);
  if (!systemVariables.has(name)) {
    if (/^[A-Z]/.test(name)) throw notImplemented(`$$${name}`);
    throw located(17276, `Use of undefined variable: ${name}`);
  }
  if (name === "REMOVE") return () => undefined;
  if (name === "NOW") return (context) => new Date(context.now);
  return (context) => followPath(context.root, parts, 0);
}

/** The parts of a field path. */
function parseFieldPath(path: string): string[] {
  const parts = path.split(".");
  if (path === "") throw located(16872, "'$' by itself is not a valid FieldPath");
  if (parts.includes(""))
    throw located(path.endsWith(".") ? 40353 : 15998, "FieldPath must not end with a '.' or have empty parts.");
  const bad = parts.find((part) => part.startsWith("$"));
  if (bad !== undefined)
    throw located(16410, `FieldPath field names may not start with '$'. Consider using $getField or $setField.`);
  return parts;
}

function fieldPath(parts: readonly string[]): Expression {
  const [only = ""] = parts;
  if (parts.length === 1) return (context) => getField(context.root, only);
  return (context) => followPath(context.root, parts, 0);
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
