import { typeName } from "./bson-types.ts";
import { fixed, isNullish, isTruthy, type OperatorTable, unary, variadic } from "./expression-arguments.ts";
import { located } from "./refusals.ts";
import { ValueSet } from "./value-set.ts";

function asArrays(values: readonly unknown[], name: string, code: number): unknown[][] {
  return values.map((value) => {
    if (!Array.isArray(value))
      throw located(code, `All operands of ${name} must be arrays. One argument is of type: ${typeName(value)}`);
    return value as unknown[];
  });
}

function union(values: readonly unknown[], name: string): unknown {
  if (values.some(isNullish)) return null;
  const set = new ValueSet();
  for (const value of asArrays(values, name, 17043).flat()) set.add(value);
  return set.values();
}

function intersection(values: readonly unknown[], name: string): unknown {
  if (values.some(isNullish)) return null;
  const [first = [], ...others] = asArrays(values, name, 17047);
  const sets = others.map((array) => new ValueSet(array));
  return new ValueSet(first.filter((value) => sets.every((set) => set.has(value)))).values();
}

function difference([a, b]: unknown[], name: string): unknown {
  if (isNullish(a) || isNullish(b)) return null;
  const [left = [], right = []] = asArrays([a, b], name, 17048);
  const excluded = new ValueSet(right);
  return new ValueSet(left.filter((value) => !excluded.has(value))).values();
}

function areEqual(values: readonly unknown[], name: string): boolean {
  const [first, ...others] = asArrays(values, name, 17044).map((array) => new ValueSet(array));
  return others.every((set) => set.size === first?.size && set.values().every((value) => first.has(value)));
}

const subset = fixed(2, 2, ([a, b], name) => {
  const [left = [], right = []] = asArrays([a, b], name, 17046);
  const set = new ValueSet(right);
  return left.every((value) => set.has(value));
});

const elements = (code: number, run: (array: readonly unknown[]) => boolean) =>
  unary((value, name) => {
    if (!Array.isArray(value)) throw located(code, `${name}'s argument must be an array, but is ${typeName(value)}`);
    return run(value);
  });

export const setOperators: OperatorTable = {
  $setUnion: variadic(union),
  $setIntersection: variadic(intersection),
  $setDifference: fixed(2, 2, difference),
  $setEquals: fixed(2, Number.POSITIVE_INFINITY, areEqual),
  $setIsSubset: subset,
  $anyElementTrue: elements(17041, (array) => array.some(isTruthy)),
  $allElementsTrue: elements(17040, (array) => array.every(isTruthy)),
};
