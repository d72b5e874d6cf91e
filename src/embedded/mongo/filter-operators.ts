import type { Document } from "bson";
import { bsonTag, canonicalType, canonicalTypeOf, isDocument, typeName, typeNumbers } from "./bson-types.ts";
import { notImplemented } from "./command-error.ts";
import { compareValues, equalValues } from "./compare.ts";
import type { Matcher } from "./filter.ts";
import { numberKind, toDouble, toSafeInteger } from "./numbers.ts";
import { badValue } from "./refusals.ts";
import { compileRegex, isRegex } from "./regex.ts";

/** Told the path of a condition and the array element that satisfied it. */
export type Recorder = (path: string, position: number) => void;

/** Whether some value that the condition's path reaches satisfies `visit`; `wholeLeaf` leaves arrays at its end whole. */
type Reach = (visit: (value: unknown) => boolean, wholeLeaf: boolean) => boolean;

/** One operator on one path: it asks `reach` for values, and may name the array element that it rests on. */
export type Condition = (reach: Reach, recordPosition: (position: number) => void) => boolean;

type CompileMatcher = (filter: Document) => Matcher;

/** Whether the value is a document whose first field is an operator; a DBRef's `$ref`, `$id` are data. */
export function isOperatorDocument(value: unknown): value is Document {
  if (!isDocument(value) || bsonTag(value) !== undefined) return false;
  const [first] = Object.keys(value);
  return first?.startsWith("$") === true && first !== "$ref" && first !== "$id" && first !== "$db";
}

/** The conditions that the right side of `path: …` stands for; all must hold. */
export function compileCondition(condition: unknown, compileMatcher: CompileMatcher): Condition[] {
  if (isRegex(condition)) return [reaches(regexTest(condition))];
  if (!isOperatorDocument(condition)) return [reaches(equalityTest(condition))];
  return Object.keys(condition).flatMap((operator) => {
    if (operator === "$options") {
      if (!("$regex" in condition)) throw badValue("$options needs a $regex");
      return [];
    }
    return [compileOperator(operator, condition[operator], condition, compileMatcher)];
  });
}

const reaches = (test: (value: unknown) => boolean): Condition => {
  return (reach) => reach(test, false);
};
const not = (condition: Condition): Condition => {
  return (reach) => !condition(reach, () => undefined);
};

function compileOperator(
  name: string,
  operand: unknown,
  siblings: Document,
  compileMatcher: CompileMatcher,
): Condition {
  switch (name) {
    case "$eq":
      return reaches(equalityTest(operand));
    case "$ne":
      if (isRegex(operand)) throw badValue("Can't have regex as arg to $ne.");
      return not(reaches(equalityTest(operand)));
    case "$gt":
    case "$gte":
    case "$lt":
    case "$lte":
      return reaches(orderTest(name, operand));
    case "$in":
      return reaches(memberTest(name, operand));
    case "$nin":
      return not(reaches(memberTest(name, operand)));
    case "$exists":
      return existence(operand);
    case "$type":
      return reaches(typeTest(operand));
    case "$mod":
      return reaches(modTest(operand));
    case "$regex":
      return reaches(regexTest(operand, siblings.$options));
    case "$not":
      return negation(operand, compileMatcher);
    case "$size":
      return sizeCondition(operand);
    case "$all":
      return allCondition(operand, compileMatcher);
    case "$elemMatch":
      return elementCondition(operand, compileMatcher);
    default:
      throw unknownOperator(name);
  }
}

const offered = [
  "$bitsAllSet",
  "$bitsAllClear",
  "$bitsAnySet",
  "$bitsAnyClear",
  "$geoWithin",
  "$geoIntersects",
  "$near",
  "$nearSphere",
];

function unknownOperator(name: string) {
  return offered.includes(name) ? notImplemented(name) : badValue(`unknown operator: ${name}`);
}

/** Equality; null also equals a missing field. */
function equalityTest(operand: unknown): (value: unknown) => boolean {
  if (operand === undefined || operand === null) return (value) => value === null || value === undefined;
  return (value) => value !== undefined && equalValues(value, operand);
}

/** Order within one type; null compares as equal with null and missing, NaN only with itself. */
function orderTest(name: string, operand: unknown): (value: unknown) => boolean {
  if (isRegex(operand)) throw badValue(`Can't have RegEx as arg to predicate over field '${name}'.`);
  const includesEqual = name === "$gte" || name === "$lte";
  const wanted = name === "$gt" || name === "$gte" ? 1 : -1;
  const type = canonicalTypeOf(operand);
  if (type === canonicalType.null || type === canonicalType.missing) {
    return (value) => includesEqual && (value === null || value === undefined);
  }
  const isBound = type === canonicalType.minKey || type === canonicalType.maxKey;
  const isNaNOperand = type === canonicalType.number && Number.isNaN(toDouble(operand));
  return (value) => {
    if (value === undefined || (!isBound && canonicalTypeOf(value) !== type)) return false;
    const isNaNValue = type === canonicalType.number && Number.isNaN(toDouble(value));
    if (isNaNOperand || isNaNValue) return includesEqual && isNaNOperand && isNaNValue;
    const order = compareValues(value, operand);
    return order === wanted || (includesEqual && order === 0);
  };
}

function memberTest(name: string, operand: unknown): (value: unknown) => boolean {
  if (!Array.isArray(operand)) throw badValue(`${name} needs an array`);
  const tests = operand.map((member: unknown) => {
    if (isOperatorDocument(member)) throw badValue(`cannot nest $ under ${name}`);
    return isRegex(member) ? regexTest(member) : equalityTest(member);
  });
  const strings = new Set<unknown>(operand.filter((member: unknown) => typeof member === "string"));
  if (strings.size === operand.length) return (value) => typeof value === "string" && strings.has(value);
  return (value) => tests.some((test) => test(value));
}

function existence(operand: unknown): Condition {
  const isThere: Condition = (reach) => reach((value) => value !== undefined, true);
  const isWanted = typeof operand === "object" ? operand !== null : Boolean(operand);
  const isZero = numberKind(operand) !== undefined && toDouble(operand) === 0;
  return isWanted && !isZero ? isThere : not(isThere);
}

function typeTest(operand: unknown): (value: unknown) => boolean {
  const wanted: readonly unknown[] = Array.isArray(operand) ? operand : [operand];
  if (wanted.length === 0) throw badValue("$type must match at least one type");
  const names = new Set(wanted.flatMap(typeNamesOf));
  return (value) => value !== undefined && names.has(typeName(value));
}

function typeNamesOf(operand: unknown): string[] {
  if (operand === "number") return ["int", "long", "double", "decimal"];
  if (typeof operand === "string") {
    if (!(operand in typeNumbers)) throw badValue(`Unknown type name alias: ${operand}`);
    return [operand];
  }
  if (numberKind(operand) === undefined) throw badValue("type must be represented as a number or a string");
  const found = Object.entries(typeNumbers).find(([, code]) => code === toDouble(operand));
  if (found === undefined) throw badValue(`Invalid numerical type code: ${String(operand)}`);
  return [found[0]];
}

function modTest(operand: unknown): (value: unknown) => boolean {
  if (!Array.isArray(operand)) throw badValue("malformed mod, needs to be an array");
  if (operand.length < 2) throw badValue("malformed mod, not enough elements");
  if (operand.length > 2) throw badValue("malformed mod, too many elements");
  const [divisor, remainder] = operand.map((part: unknown) =>
    numberKind(part) ? Math.trunc(toDouble(part)) : undefined,
  );
  if (divisor === undefined) throw badValue("malformed mod, divisor is not a number");
  if (remainder === undefined) throw badValue("malformed mod, remainder is not a number");
  if (divisor === 0) throw badValue("divisor cannot be 0");
  return (value) => {
    const number = numberKind(value) === undefined ? Number.NaN : toDouble(value);
    return Number.isFinite(number) && Math.trunc(number) % divisor === remainder;
  };
}

/** A pattern matches strings, and a stored pattern that is the same. */
function regexTest(operand: unknown, options?: unknown): (value: unknown) => boolean {
  const regex = compileRegex(operand, options);
  return (value) => (typeof value === "string" ? regex.test(value) : isRegex(value) && equalValues(value, operand));
}

function negation(operand: unknown, compileMatcher: CompileMatcher): Condition {
  if (!isRegex(operand)) {
    if (!isDocument(operand)) throw badValue("$not needs a regex or a document");
    if (Object.keys(operand).length === 0) throw badValue("$not cannot be empty");
    const [first = ""] = Object.keys(operand);
    if (!first.startsWith("$")) throw badValue(`unknown operator: ${first}`);
  }
  const conditions = compileCondition(operand, compileMatcher);
  return not((reach, record) => conditions.every((condition) => condition(reach, record)));
}

function sizeCondition(operand: unknown): Condition {
  if (numberKind(operand) === undefined) {
    throw badValue(`Failed to parse $size. Expected a number in: $size: ${JSON.stringify(operand)}`);
  }
  const size = toSafeInteger(operand);
  if (size === undefined) throw badValue(`Failed to parse $size. Expected an integer: $size: ${String(operand)}`);
  if (size < 0) throw badValue(`Failed to parse $size. Expected a non-negative number in: $size: ${size}`);
  return (reach) => reach((value) => Array.isArray(value) && value.length === size, true);
}

function allCondition(operand: unknown, compileMatcher: CompileMatcher): Condition {
  if (!Array.isArray(operand)) throw badValue("$all needs an array");
  const hasElemMatch = operand.some((member: unknown) => isOperatorDocument(member) && "$elemMatch" in member);
  const conditions = operand.map((member: unknown) => {
    if (!isOperatorDocument(member)) {
      if (hasElemMatch) throw badValue("$all/$elemMatch has to be consistent");
      return reaches(isRegex(member) ? regexTest(member) : equalityTest(member));
    }
    if (!("$elemMatch" in member)) throw badValue("no $ expressions in $all");
    return elementCondition(member.$elemMatch, compileMatcher);
  });
  return (reach, record) => conditions.length > 0 && conditions.every((condition) => condition(reach, record));
}

const logicalNames = ["$and", "$or", "$nor", "$expr", "$comment"];

function elementCondition(operand: unknown, compileMatcher: CompileMatcher): Condition {
  if (!isDocument(operand)) throw badValue("$elemMatch needs an Object");
  const [first = ""] = Object.keys(operand);
  const isOfValues = isOperatorDocument(operand) && !logicalNames.includes(first);
  const test = isOfValues ? valueElementTest(operand, compileMatcher) : documentElementTest(operand, compileMatcher);
  return (reach, record) =>
    reach((value) => {
      if (!Array.isArray(value)) return false;
      const position = value.findIndex((item: unknown) => test(item));
      if (position >= 0) record(position);
      return position >= 0;
    }, true);
}

function valueElementTest(operand: Document, compileMatcher: CompileMatcher): (item: unknown) => boolean {
  const conditions = compileCondition(operand, compileMatcher);
  return (item) =>
    conditions.every((condition) =>
      condition(
        (visit) => visit(item),
        () => undefined,
      ),
    );
}

function documentElementTest(operand: Document, compileMatcher: CompileMatcher): (item: unknown) => boolean {
  const matches = compileMatcher(operand);
  // An array inside the array is matched as the document of its positions.
  return (item) => (isDocument(item) ? matches(item) : Array.isArray(item) && matches({ ...item }));
}
