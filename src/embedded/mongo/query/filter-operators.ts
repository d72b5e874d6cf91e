import { type Document, isDocument, typeByte, typeByteOf } from "../bson/bson-types.ts";
import { encodeValue } from "../bson/index-keys.ts";
import { compareValues } from "../bson/order.ts";
import { badValue, notOffered } from "../command-error.ts";

/** Whether a document matches. */
export type Matcher = (document: Document) => boolean;

/** Whether some value that the condition's path reaches satisfies `visit`; `wholeLeaf` leaves arrays at its end whole. */
type Reach = (visit: (value: unknown) => boolean, wholeLeaf: boolean) => boolean;

/** One operator on one path: it asks `reach` for values. */
export type Condition = (reach: Reach) => boolean;

type CompileMatcher = (filter: Document) => Matcher;
type ConditionFactory = (operand: unknown, compileMatcher: CompileMatcher) => Condition;

/** Every operator on a field: what is not here is refused. */
export const filterOperators: Readonly<Record<string, ConditionFactory>> = {
  $ne: (operand) => not(reaches(equalityTest(operand))),
  $gt: (operand) => reaches(orderTest(operand, 1, false)),
  $gte: (operand) => reaches(orderTest(operand, 1, true)),
  $lt: (operand) => reaches(orderTest(operand, -1, false)),
  $lte: (operand) => reaches(orderTest(operand, -1, true)),
  $in: (operand) => reaches(memberTest(operand)),
  $exists: existence,
  $not: negation,
  $elemMatch: elementCondition,
};

/** Whether the value is a document whose first field is an operator; `$ref`, `$id` and `$db` are data. */
export function isOperatorDocument(value: unknown): value is Document {
  if (!isDocument(value)) return false;
  const [first] = Object.keys(value);
  return first?.startsWith("$") === true && first !== "$ref" && first !== "$id" && first !== "$db";
}

/** The conditions that the right side of `path: …` stands for; all must hold. */
export function compileCondition(condition: unknown, compileMatcher: CompileMatcher): Condition[] {
  if (!isOperatorDocument(condition)) return [reaches(equalityTest(condition))];
  return Object.keys(condition).map((name) => {
    const make = Object.hasOwn(filterOperators, name) ? filterOperators[name] : undefined;
    if (make === undefined) throw notOffered(name, "BadValue");
    return make(condition[name], compileMatcher);
  });
}

function reaches(test: (value: unknown) => boolean): Condition {
  return (reach) => reach(test, false);
}

function not(condition: Condition): Condition {
  return (reach) => !condition(reach);
}

/** Equality; null also equals a missing field. */
function equalityTest(operand: unknown): (value: unknown) => boolean {
  if (operand === undefined || operand === null) return (value) => value === null || value === undefined;
  if (typeof operand !== "object" && !Number.isNaN(operand)) return (value) => value === operand;
  const type = typeByteOf(operand);
  const key = encodeValue(operand);
  return (value) => typeByteOf(value) === type && encodeValue(value).equals(key);
}

/** Order within one type; null compares as equal with null and missing, NaN only with itself. */
function orderTest(operand: unknown, wanted: 1 | -1, includesEqual: boolean): (value: unknown) => boolean {
  const type = typeByteOf(operand);
  if (type === typeByte.null || Number.isNaN(operand)) return includesEqual ? equalityTest(operand) : () => false;
  return (value) => {
    if (typeByteOf(value) !== type || Number.isNaN(value)) return false;
    const order = compareValues(value, operand);
    return order === wanted || (includesEqual && order === 0);
  };
}

function memberTest(operand: unknown): (value: unknown) => boolean {
  if (!Array.isArray(operand)) throw badValue("$in needs an array");
  if (operand.some(isOperatorDocument)) throw badValue("cannot nest $ under $in");
  const strings = new Set<unknown>(operand.filter((member: unknown) => typeof member === "string"));
  if (strings.size === operand.length) return (value) => typeof value === "string" && strings.has(value);
  const tests = operand.map(equalityTest);
  return (value) => tests.some((test) => test(value));
}

function existence(operand: unknown): Condition {
  const isThere: Condition = (reach) => reach((value) => value !== undefined, true);
  return operand === true || operand === 1 ? isThere : not(isThere);
}

function negation(operand: unknown, compileMatcher: CompileMatcher): Condition {
  if (!isDocument(operand)) throw badValue("$not needs a regex or a document");
  if (Object.keys(operand).length === 0) throw badValue("$not cannot be empty");
  const [first = ""] = Object.keys(operand);
  if (!first.startsWith("$")) throw badValue(`unknown operator: ${first}`);
  const conditions = compileCondition(operand, compileMatcher);
  return not((reach) => conditions.every((condition) => condition(reach)));
}

function elementCondition(operand: unknown, compileMatcher: CompileMatcher): Condition {
  if (!isDocument(operand)) throw badValue("$elemMatch needs an Object");
  if (isOperatorDocument(operand) && Object.hasOwn(filterOperators, Object.keys(operand)[0] ?? ""))
    throw notOffered("$elemMatch on values that are no documents", "BadValue");
  const matches = compileMatcher(operand);
  const test = (item: unknown) => isDocument(item) && matches(item);
  return (reach) => reach((value) => Array.isArray(value) && value.some(test), true);
}
