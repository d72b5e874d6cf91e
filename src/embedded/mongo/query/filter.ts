import { type Document, isDocument, typeByte, typeByteOf } from "../bson/bson-types.ts";
import { encodeValue } from "../bson/index-keys.ts";
import { compareValues } from "../bson/order.ts";
import { rootOf, someAtPath } from "../bson/path-values.ts";
import { badValue, notOffered } from "../command-error.ts";

/** Whether a document matches. */
export type Matcher = (document: Document) => boolean;

/** Whether some value that the condition's path reaches satisfies `visit`; `wholeLeaf` leaves arrays at its end whole. */
type Reach = (visit: (value: unknown) => boolean, wholeLeaf: boolean) => boolean;

/** One operator on one path: it asks `reach` for values. */
type Condition = (reach: Reach) => boolean;

/** Every operator at the top of a filter: what is not here is refused. */
export const logicalOperators: Readonly<Record<string, (matchers: readonly Matcher[]) => Matcher>> = {
  $and: all,
  $or: any,
};

/** Every operator on a field: what is not here is refused. */
export const filterOperators: Readonly<Record<string, (operand: unknown) => Condition>> = {
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

/**
 * The matcher of a query filter. Operators not on the list are refused when the filter is compiled, not when it runs.
 * https://www.mongodb.com/docs/manual/reference/operator/query/
 * @throws CommandError as MongoDB for an unknown operator or a malformed operand.
 */
export function compileFilter(filter: Document): Matcher {
  return all(Object.keys(filter).map((name) => compileClause(name, filter[name])));
}

/** The fields of a document that a filter which compiles looks at. */
export function fieldsOf(filter: Document): string[] {
  return Object.entries(filter).flatMap(([name, value]) =>
    name.startsWith("$") ? (value as Document[]).flatMap(fieldsOf) : [rootOf(name)],
  );
}

function all(clauses: readonly Matcher[]): Matcher {
  const [only] = clauses;
  if (only !== undefined && clauses.length === 1) return only;
  return (document) => clauses.every((clause) => clause(document));
}

function any(clauses: readonly Matcher[]): Matcher {
  return (document) => clauses.some((clause) => clause(document));
}

function compileClause(name: string, condition: unknown): Matcher {
  if (!name.startsWith("$")) return compileField(name, condition);
  const combine = Object.hasOwn(logicalOperators, name) ? logicalOperators[name] : undefined;
  if (combine === undefined) throw notOffered(name, "BadValue");
  if (!Array.isArray(condition)) throw badValue(`${name} must be an array`);
  if (condition.length === 0) throw badValue("$and/$or/$nor must be a nonempty array");
  if (!condition.every(isDocument)) throw badValue("$or/$and/$nor entries need to be full objects");
  return combine(condition.map(compileFilter));
}

function compileField(path: string, condition: unknown): Matcher {
  const holds = compileCondition(condition);
  const parts = path.split(".");
  return (document) => holds((visit, wholeLeaf) => someAtPath(document, parts, visit, wholeLeaf));
}

/** Whether the value is a document whose first field is an operator; `$ref`, `$id` and `$db` are data. */
export function isOperatorDocument(value: unknown): value is Document {
  if (!isDocument(value)) return false;
  const [first] = Object.keys(value);
  return first?.startsWith("$") === true && first !== "$ref" && first !== "$id" && first !== "$db";
}

/** What the right side of `path: …` stands for. */
function compileCondition(condition: unknown): Condition {
  if (!isOperatorDocument(condition)) return reaches(equalityTest(condition));
  const conditions = Object.keys(condition).map((name) => {
    const make = Object.hasOwn(filterOperators, name) ? filterOperators[name] : undefined;
    if (make === undefined) throw notOffered(name, "BadValue");
    return make(condition[name]);
  });
  return (reach) => conditions.every((holds) => holds(reach));
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

function negation(operand: unknown): Condition {
  if (!isOperatorDocument(operand)) throw badValue("$not needs a document of operators");
  return not(compileCondition(operand));
}

function elementCondition(operand: unknown): Condition {
  if (!isDocument(operand)) throw badValue("$elemMatch needs an Object");
  if (Object.hasOwn(filterOperators, Object.keys(operand)[0] ?? ""))
    throw notOffered("$elemMatch on values that are no documents", "BadValue");
  const matches = compileFilter(operand);
  const test = (item: unknown) => isDocument(item) && matches(item);
  return (reach) => reach((value) => Array.isArray(value) && value.some(test), true);
}
