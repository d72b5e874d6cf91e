import { type Document, typeName } from "../bson/bson-types.ts";
import { addNumbers, numberKind, toDouble, toSafeInteger } from "../bson/numbers.ts";
import { located, notOffered, typeMismatch } from "../command-error.ts";

/** What an expression is evaluated against: the document and one clock. */
export type EvaluationContext = { readonly root: Document; readonly now: Date };

/** A compiled expression. Its value is undefined where MongoDB's is missing. */
export type Expression = (context: EvaluationContext) => unknown;

/** Makes the expression of one operator, or throws for operands that it cannot have. */
type OperatorCompiler = (operand: unknown, compile: (operand: unknown) => Expression) => Expression;

/** Every expression operator that this server has: what is not here is refused. */
export const expressionOperators: Readonly<Record<string, OperatorCompiler>> = {
  $add: variadic(add),
  $concatArrays: variadic(concatArrays),
  $ifNull: (operand, compile) => {
    const parts = toOperands(operand);
    if (parts.length < 2) throw located(1257300, `$ifNull needs at least two arguments, had: ${parts.length}`);
    const choices = parts.map(compile);
    return (context) => {
      let value: unknown;
      for (const choice of choices) {
        value = choice(context);
        if (!isNullish(value)) break;
      }
      return value;
    };
  },
  $literal: (operand) => () => operand,
  $slice: (operand, compile) => {
    const parts = toOperands(operand);
    if (parts.length !== 2) throw notOffered(`$slice of ${parts.length} arguments`);
    const operands = parts.map(compile);
    return (context) => slice(operands.map((part) => part(context)));
  },
};

const toOperands = (operand: unknown): readonly unknown[] => (Array.isArray(operand) ? operand : [operand]);

/** An operator of any number of operands, all evaluated before it runs. */
function variadic(run: (values: unknown[]) => unknown): OperatorCompiler {
  return (operand, compile) => {
    const parts = toOperands(operand).map(compile);
    return (context) => run(parts.map((part) => part(context)));
  };
}

/** Whether a value is null or missing, which most operators answer with null. */
function isNullish(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

function add(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  if (values.some((value) => value instanceof Date)) throw notOffered("$add of dates");
  const bad = values.find((value) => numberKind(value) === undefined);
  if (bad !== undefined) throw typeMismatch(`$add only supports numeric or date types, not ${typeName(bad)}`);
  return values.reduce<unknown>((total, value) => addToSum(total, value), 0);
}

/** A sum and one more value, which counts if it is a number. Where 64 bits overflow, the sum goes on in doubles. */
export function addToSum(total: unknown, value: unknown): unknown {
  if (numberKind(value) === undefined) return total;
  return addNumbers(total, value) ?? toDouble(total) + toDouble(value);
}

function concatArrays(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  return values.flatMap((value) => {
    if (!Array.isArray(value)) throw located(28664, `$concatArrays only supports arrays, not ${typeName(value)}`);
    return value as unknown[];
  });
}

function slice([array, second]: readonly unknown[]): unknown {
  if (isNullish(array) || second === null) return null;
  if (!Array.isArray(array))
    throw located(28724, `First argument to $slice must be an array, but is of type: ${typeName(array)}`);
  const first = toSafeInteger(second);
  if (first === undefined)
    throw located(28725, `Second argument to $slice must be a numeric value, but is of type: ${typeName(second)}`);
  return first < 0 ? array.slice(first) : array.slice(0, first);
}
