import { averageOf, extremeOf, sumOf } from "./accumulate.ts";
import { bsonTag, isDocument, typeName } from "./bson-types.ts";
import { compareValues, equalValues, sortComparator } from "./compare.ts";
import {
  type CompileOperand,
  type EvaluationContext,
  fixed,
  isNullish,
  isTruthy,
  named,
  namedOperands,
  type OperatorCompiler,
  type OperatorTable,
  unary,
  variadic,
} from "./expression-arguments.ts";
import { toSafeInteger } from "./numbers.ts";
import { located } from "./refusals.ts";

const size = unary((value) => {
  if (Array.isArray(value)) return value.length;
  throw located(17124, `The argument to $size must be an array, but was of type: ${typeName(value)}`);
});

const elementAt = fixed(2, 2, ([array, index]) => {
  if (isNullish(array) || isNullish(index)) return null;
  if (!Array.isArray(array))
    throw located(28689, `$arrayElemAt's first argument must be an array, but is ${typeName(array)}`);
  const at = toSafeInteger(index);
  if (at === undefined)
    throw located(28690, `$arrayElemAt's second argument must be a numeric value, but is ${typeName(index)}`);
  return array.at(at);
});

const end = (at: 0 | -1) =>
  unary((value, name) => {
    if (isNullish(value)) return null;
    if (!Array.isArray(value)) throw located(28689, `${name}'s argument must be an array, but is ${typeName(value)}`);
    return value.at(at);
  });

const slice = fixed(2, 3, ([array, second, third]) => {
  if (isNullish(array) || second === null || third === null) return null;
  if (!Array.isArray(array))
    throw located(28724, `First argument to $slice must be an array, but is of type: ${typeName(array)}`);
  const first = toSafeInteger(second);
  if (first === undefined)
    throw located(28725, `Second argument to $slice must be a numeric value, but is of type: ${typeName(second)}`);
  if (third === undefined) return first < 0 ? array.slice(first) : array.slice(0, first);
  const count = toSafeInteger(third);
  if (count === undefined)
    throw located(28727, `Third argument to $slice must be numeric, but is of type: ${typeName(third)}`);
  if (count <= 0) throw located(28729, `Third argument to $slice must be positive: ${count}`);
  const from = first < 0 ? Math.max(0, array.length + first) : first;
  return array.slice(from, from + count);
});

function concatArrays(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  return values.flatMap((value) => {
    if (!Array.isArray(value)) throw located(28664, `$concatArrays only supports arrays, not ${typeName(value)}`);
    return value as unknown[];
  });
}

const contains = fixed(2, 2, ([wanted, array]) => {
  if (!Array.isArray(array))
    throw located(40081, `$in requires an array as a second argument, found: ${typeName(array)}`);
  return array.some((item: unknown) => equalValues(item, wanted));
});

const indexOf = fixed(2, 4, ([array, wanted, start = 0, stop]) => {
  if (isNullish(array)) return null;
  if (!Array.isArray(array))
    throw located(40090, `$indexOfArray requires an array as a first argument, found: ${typeName(array)}`);
  const from = toSafeInteger(start);
  const to = stop === undefined ? array.length : toSafeInteger(stop);
  if (from === undefined || to === undefined) throw located(40096, "$indexOfArray requires an integral index");
  if (from < 0 || to < 0) throw located(40097, "$indexOfArray requires a nonnegative index");
  const at = array.slice(from, to).findIndex((item: unknown) => equalValues(item, wanted));
  return at < 0 ? -1 : at + from;
});

const reverse = unary((value) => {
  if (isNullish(value)) return null;
  if (!Array.isArray(value))
    throw located(34435, `The argument to $reverseArray must be an array, but was of type: ${typeName(value)}`);
  return value.toReversed();
});

/** The longest array that `$range` makes; MongoDB's own bound is its memory. */
const MAX_RANGE = 1_000_000;

const range = fixed(2, 3, ([start, stop, step = 1]) => {
  const [from, to, by] = [start, stop, step].map(toSafeInteger);
  if (from === undefined) throw located(34443, "$range requires a numeric starting value");
  if (to === undefined) throw located(34445, "$range requires a numeric ending value");
  if (by === undefined) throw located(34447, "$range requires a numeric step value");
  if (by === 0) throw located(34449, "$range requires a non-zero step value");
  const length = Math.max(0, Math.ceil((to - from) / by));
  if (length > MAX_RANGE) throw located(292, "$range would use too much memory");
  return Array.from({ length }, (_, at) => from + at * by);
});

const filter: OperatorCompiler = (operand, compile, name) => {
  const fields = namedOperands(operand, { required: ["input", "cond"], optional: ["as", "limit"] }, name);
  const body = loop(fields, "cond", compile);
  const limit = "limit" in fields ? compile(fields.limit) : undefined;
  return (context) => {
    const array = body.input(context);
    if (isNullish(array)) return null;
    if (!Array.isArray(array)) throw located(28651, `input to $filter must be an array not ${typeName(array)}`);
    const most = limit === undefined ? undefined : toSafeInteger(limit(context));
    if (most !== undefined && most < 1) throw located(327392, "$filter: limit must be greater than 0");
    const kept = array.filter((item: unknown) => isTruthy(body.each(context, { [body.as]: item })));
    return most === undefined ? kept : kept.slice(0, most);
  };
};

const map: OperatorCompiler = (operand, compile, name) => {
  const fields = namedOperands(operand, { required: ["input", "in"], optional: ["as"] }, name);
  const body = loop(fields, "in", compile);
  return (context) => {
    const array = body.input(context);
    if (isNullish(array)) return null;
    if (!Array.isArray(array)) throw located(16883, `input to $map must be an array not ${typeName(array)}`);
    return array.map((item: unknown) => body.each(context, { [body.as]: item }) ?? null);
  };
};

function loop(fields: Readonly<Record<string, unknown>>, inner: string, compile: CompileOperand) {
  const as = typeof fields.as === "string" ? fields.as : "this";
  const each = compile(fields[inner], [as]);
  return {
    as,
    input: compile(fields.input),
    each: (context: EvaluationContext, added: Readonly<Record<string, unknown>>) =>
      each({ ...context, variables: { ...context.variables, ...added } }),
  };
}

const reduce: OperatorCompiler = (operand, compile, name) => {
  const fields = namedOperands(operand, { required: ["input", "initialValue", "in"] }, name);
  const input = compile(fields.input);
  const initial = compile(fields.initialValue);
  const body = compile(fields.in, ["this", "value"]);
  return (context) => {
    const array = input(context);
    if (isNullish(array)) return null;
    if (!Array.isArray(array))
      throw located(40080, `$reduce requires that 'input' be an array, found: ${typeName(array)}`);
    return array.reduce(
      (value: unknown, item: unknown) => body({ ...context, variables: { ...context.variables, value, this: item } }),
      initial(context),
    );
  };
};

const zip = named({ required: ["inputs"], optional: ["useLongestLength", "defaults"] }, (values) => {
  const { inputs, useLongestLength, defaults } = values;
  if (!Array.isArray(inputs)) throw located(34461, `inputs must be an array of expressions, found ${typeName(inputs)}`);
  if (inputs.some(isNullish)) return null;
  if (!inputs.every(Array.isArray)) throw located(34468, "$zip found a non-array expression in input");
  const lengths = inputs.map((array: unknown[]) => array.length);
  const length = useLongestLength === true ? Math.max(0, ...lengths) : Math.min(...lengths);
  const fill: readonly unknown[] = Array.isArray(defaults) ? defaults : [];
  return Array.from({ length }, (_, at) =>
    inputs.map((array: unknown[], which) => (at < array.length ? array[at] : (fill[which] ?? null))),
  );
});

const sortArray: OperatorCompiler = (operand, compile, name) => {
  const fields = namedOperands(operand, { required: ["input", "sortBy"] }, name);
  const compare = elementOrder(fields.sortBy);
  const input = compile(fields.input);
  return (context) => {
    const array = input(context);
    if (isNullish(array)) return null;
    if (!Array.isArray(array))
      throw located(2942504, `The input argument to $sortArray must be an array, but was of type: ${typeName(array)}`);
    return array.toSorted(compare);
  };
};

function elementOrder(sortBy: unknown): (a: unknown, b: unknown) => number {
  if (isDocument(sortBy) && bsonTag(sortBy) === undefined) {
    const compare = sortComparator(sortBy);
    return (a, b) => compare(isDocument(a) ? a : {}, isDocument(b) ? b : {});
  }
  const direction = toSafeInteger(sortBy);
  if (direction !== 1 && direction !== -1) throw located(2942507, "The $sort element value must be either 1 or -1");
  return (a, b) => compareValues(a ?? null, b ?? null) * direction;
}

/** `$firstN`, `$lastN`, `$maxN` and `$minN` of an array. */
const takeN = (take: (array: readonly unknown[], count: number) => unknown[]) =>
  named({ required: ["input", "n"] }, ({ input, n }, name) => {
    const count = toSafeInteger(n);
    if (count === undefined || count <= 0) throw located(5787908, `'n' must be greater than 0, found ${String(n)}`);
    if (!Array.isArray(input)) throw located(5788200, `${name}: Input must be an array`);
    return take(input, count);
  });

const ordered = (array: readonly unknown[], direction: 1 | -1) =>
  array.filter((item) => !isNullish(item)).sort((a, b) => compareValues(a, b) * direction);

/** An accumulator as an expression: over its operands, or over the one array that they are. */
const over = (run: (values: readonly unknown[]) => unknown) =>
  variadic((values) => run(values.length === 1 && Array.isArray(values[0]) ? values[0] : values));

export const arrayOperators: OperatorTable = {
  $size: size,
  $arrayElemAt: elementAt,
  $first: end(0),
  $last: end(-1),
  $slice: slice,
  $concatArrays: variadic(concatArrays),
  $in: contains,
  $indexOfArray: indexOf,
  $reverseArray: reverse,
  $range: range,
  $filter: filter,
  $map: map,
  $reduce: reduce,
  $zip: zip,
  $sortArray: sortArray,
  $isArray: unary((value) => Array.isArray(value)),
  $firstN: takeN((array, count) => array.slice(0, count)),
  $lastN: takeN((array, count) => array.slice(-count)),
  $minN: takeN((array, count) => ordered(array, 1).slice(0, count)),
  $maxN: takeN((array, count) => ordered(array, -1).slice(0, count)),
  $sum: over(sumOf),
  $avg: over(averageOf),
  $min: over((values) => extremeOf(values, -1)),
  $max: over((values) => extremeOf(values, 1)),
};
