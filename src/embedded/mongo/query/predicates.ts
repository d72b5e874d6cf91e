import { type Document, isDocument, typeByte, typeByteOf } from "../bson/bson-types.ts";
import { compareValues } from "../bson/order.ts";
import { notOffered } from "../command-error.ts";
import { isOperatorDocument } from "./filter.ts";

/** One end of a range. */
export type Bound = { value: unknown; isInclusive: boolean };

/** What a filter demands of one path that index keys can answer. */
export type Predicates = {
  /** The path equals one of these. */
  equals?: readonly unknown[];
  from?: Bound;
  to?: Bound;
  /** Whether a document without the path cannot match: then a sparse index holds all matches. */
  needsPresence: boolean;
  /** Whether the keys say all that the filter says of this path, so that it need not be tested again. */
  isExact: boolean;
};

export type Conjunction = {
  paths: Map<string, Predicates>;
  /** Whether the filter holds something that no index key can answer. */
  hasMore: boolean;
};

/** Reads a filter as a conjunction over paths. What it cannot read stays for the matcher: `hasMore`. */
export function readConjunction(filter: Document): Conjunction {
  const conjunction: Conjunction = { paths: new Map(), hasMore: false };
  readInto(conjunction, filter);
  return conjunction;
}

function readInto(conjunction: Conjunction, filter: Document): void {
  for (const name of Object.keys(filter)) {
    const condition: unknown = filter[name];
    if (name === "$and" && Array.isArray(condition)) {
      for (const part of condition) {
        if (isDocument(part)) readInto(conjunction, part);
        else conjunction.hasMore = true; // the matcher refuses it
      }
    } else if (name.startsWith("$")) {
      conjunction.hasMore = true;
    } else {
      readCondition(conjunction, name, condition);
    }
  }
}

function readCondition(conjunction: Conjunction, path: string, condition: unknown): void {
  const predicates = conjunction.paths.get(path) ?? { needsPresence: false, isExact: true };
  conjunction.paths.set(path, predicates);
  if (!isOperatorDocument(condition)) {
    narrowEquals(predicates, [condition]);
    return;
  }
  for (const operator of Object.keys(condition)) readOperator(predicates, operator, condition[operator]);
}

function readOperator(predicates: Predicates, operator: string, operand: unknown): void {
  switch (operator) {
    case "$in":
      if (Array.isArray(operand)) narrowEquals(predicates, operand);
      else predicates.isExact = false;
      break;
    case "$gt":
    case "$gte":
      narrowRange(predicates, "from", operand, operator === "$gte");
      break;
    case "$lt":
    case "$lte":
      narrowRange(predicates, "to", operand, operator === "$lte");
      break;
    case "$exists":
      if (operand === true || operand === 1) predicates.needsPresence = true;
      predicates.isExact = false;
      break;
    default:
      predicates.isExact = false;
  }
}

function narrowEquals(predicates: Predicates, values: readonly unknown[]): void {
  // An array is filed by its elements: not all values equal to it have one key.
  if (predicates.equals !== undefined || values.some(Array.isArray)) {
    predicates.isExact = false;
    return;
  }
  predicates.equals = values;
  if (!values.every(isScalar)) predicates.isExact = false;
  if (values.every((value) => value !== null && value !== undefined)) predicates.needsPresence = true;
}

function narrowRange(predicates: Predicates, side: "from" | "to", value: unknown, isInclusive: boolean): void {
  if (predicates[side] !== undefined || !isScalar(value) || Number.isNaN(value)) {
    predicates.isExact = false;
    return;
  }
  predicates[side] = { value, isInclusive };
  predicates.needsPresence = true;
}

const specialTypes: readonly number[] = [typeByte.null, typeByte.array, typeByte.object];

/** Whether equality of keys is equality of values, with no special rule (null also matches missing fields). */
function isScalar(value: unknown): boolean {
  return !specialTypes.includes(typeByteOf(value));
}

/** The filter of a partial index: of each of its fields a value, or that it is there. @throws CommandError 238 for others. */
export function checkPartialFilter(filter: Document): void {
  for (const [path, condition] of Object.entries(filter)) {
    const isOffered = !path.startsWith("$") && (isPresence(condition) || !isDocument(condition));
    if (!isOffered) throw notOffered("an index on documents other than those with a field or a value");
  }
}

function isPresence(condition: unknown): boolean {
  return isDocument(condition) && Object.keys(condition).join() === "$exists" && condition.$exists === true;
}

/** Whether a partial index has every document that a query matches; only sure cases are answered with yes. */
export function impliesPartial(conjunction: Conjunction, partialFilter: Document): boolean {
  return Object.entries(partialFilter).every(([path, condition]) => {
    const predicates = conjunction.paths.get(path);
    if (isPresence(condition)) return predicates?.needsPresence === true;
    if (predicates?.equals === undefined || predicates.equals.length === 0) return false;
    return predicates.equals.every((value) => compareValues(value, condition) === 0);
  });
}
