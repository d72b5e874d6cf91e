import type { Document } from "bson";
import { averageOf, extremeOf, sumOf } from "./accumulate.ts";
import { bsonTag, isDocument, typeName } from "./bson-types.ts";
import { notImplemented } from "./command-error.ts";
import { compileExpression } from "./expression.ts";
import { type EvaluationContext, type Expression, namedOperands } from "./expression-arguments.ts";
import { mergeObjects } from "./expression-objects.ts";
import { makeDouble, makeInteger, numberKind, toDouble, toSafeInteger } from "./numbers.ts";
import { scoreAwareComparator } from "./pipeline-shape.ts";
import { failedToParse, located } from "./refusals.ts";
import { ValueSet } from "./value-set.ts";

/** The value of one accumulator over a group's documents, in their order. */
export type Accumulator = (group: readonly EvaluationContext[]) => unknown;

/** An accumulator over the values of one expression. */
const over = (run: (values: unknown[]) => unknown) => (operand: unknown, variables: readonly string[]) => {
  const expression = compileExpression(operand, variables);
  return (group: readonly EvaluationContext[]) => run(group.map((context) => expression(context)));
};

const present = (values: readonly unknown[]) => values.filter((value) => value !== undefined);

function standardDeviation(values: readonly unknown[], isSample: boolean): unknown {
  const numbers = values.filter((value) => numberKind(value) !== undefined).map(toDouble);
  const divisor = isSample ? numbers.length - 1 : numbers.length;
  if (divisor <= 0) return null;
  const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  return makeDouble(Math.sqrt(numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0) / divisor));
}

type Maker = (operand: unknown, variables: readonly string[], name: string) => Accumulator;

/** `$top`, `$bottom` and their N forms: sort the group, take from an end. */
const ranked = (options: { isTop: boolean; isMany: boolean }): Maker => {
  const required = options.isMany ? ["n", "sortBy", "output"] : ["sortBy", "output"];
  return (operand, variables, name) => {
    const fields = namedOperands(operand, { required }, name);
    if (!isDocument(fields.sortBy)) throw failedToParse(`${name} requires 'sortBy' to be an object`);
    const compare = scoreAwareComparator(fields.sortBy);
    const output = compileExpression(fields.output, variables);
    const count = options.isMany ? countOf(fields.n) : 1;
    return (group) => {
      const sorted = group.toSorted((a, b) => compare(a.root, b.root));
      const taken = options.isTop ? sorted.slice(0, count) : sorted.slice(-count);
      const values = taken.map((context) => output(context) ?? null);
      return options.isMany ? values : (values[0] ?? null);
    };
  };
};

/** `$firstN`, `$lastN`, `$minN`, `$maxN`. */
const many = (take: (values: unknown[], count: number) => unknown[]): Maker => {
  return (operand, variables, name) => {
    const fields = namedOperands(operand, { required: ["input", "n"] }, name);
    const input: Expression = compileExpression(fields.input, variables);
    const count = countOf(fields.n);
    return (group) =>
      take(
        group.map((context) => input(context) ?? null),
        count,
      );
  };
};

function countOf(value: unknown): number {
  const count = toSafeInteger(value);
  if (count === undefined || count <= 0) throw located(5787908, `'n' must be greater than 0, found ${String(value)}`);
  return count;
}

function extremes(values: readonly unknown[], count: number, sign: 1 | -1): unknown[] {
  const compare = scoreAwareComparator({ value: -sign });
  return values
    .filter((value) => value !== null)
    .map((value): Document => ({ value }))
    .sort(compare)
    .slice(0, count)
    .map(({ value }): unknown => value);
}

const makers: Readonly<Record<string, Maker>> = {
  $sum: over(sumOf),
  $avg: over(averageOf),
  $min: over((values) => extremeOf(values, -1)),
  $max: over((values) => extremeOf(values, 1)),
  $first: over((values) => values[0] ?? null),
  $last: over((values) => values.at(-1) ?? null),
  $push: over(present),
  $addToSet: over((values) => new ValueSet(present(values)).values()),
  $mergeObjects: over(mergeObjects),
  $stdDevPop: over((values) => standardDeviation(values, false)),
  $stdDevSamp: over((values) => standardDeviation(values, true)),
  $count: (operand) => {
    if (!isDocument(operand) || Object.keys(operand).length > 0)
      throw failedToParse("$count takes no arguments, i.e. $count:{}");
    return (group) => makeInteger(group.length);
  },
  $top: ranked({ isTop: true, isMany: false }),
  $topN: ranked({ isTop: true, isMany: true }),
  $bottom: ranked({ isTop: false, isMany: false }),
  $bottomN: ranked({ isTop: false, isMany: true }),
  $firstN: many((values, count) => values.slice(0, count)),
  $lastN: many((values, count) => values.slice(-count)),
  $minN: many((values, count) => extremes(values, count, -1)),
  $maxN: many((values, count) => extremes(values, count, 1)),
};

const leftOut = new Set(["$accumulator", "$median", "$percentile", "$concatArrays", "$setUnion"]);

/** Compiles the accumulators of a `$group` or `$bucket`, by the names of their fields. */
export function compileAccumulators(fields: Document, variables: readonly string[]): [string, Accumulator][] {
  return Object.keys(fields).map((field) => {
    const specification: unknown = fields[field];
    if (field.includes(".")) throw located(40235, `The field name '${field}' cannot contain '.'`);
    if (field.startsWith("$")) throw located(40236, `The field name '${field}' cannot be an operator name`);
    if (!isDocument(specification) || bsonTag(specification) !== undefined) {
      throw located(40234, `The field '${field}' must be an accumulator object`);
    }
    const [name = "", ...others] = Object.keys(specification);
    if (others.length > 0) throw located(40238, `The field '${field}' must specify one accumulator`);
    if (!name.startsWith("$"))
      throw located(40234, `The field '${field}' must be an accumulator object, found ${typeName(specification)}`);
    const maker = Object.hasOwn(makers, name) ? makers[name] : undefined;
    if (maker !== undefined) return [field, maker(specification[name], variables, name)];
    if (leftOut.has(name)) throw notImplemented(name);
    throw located(15952, `unknown group operator '${name}'`);
  });
}
