import { bsonTag, isDocument, typeName } from "./bson-types.ts";
import { equalValues, sortComparator } from "./compare.ts";
import { compileMatcher, compileValueTest } from "./filter.ts";
import { isOperatorDocument } from "./filter-operators.ts";
import { numberKind, toDouble, toSafeInteger } from "./numbers.ts";
import { badValue, failedToParse, typeMismatch } from "./refusals.ts";
import { isRegex } from "./regex.ts";
import { showElement, showValue } from "./show-value.ts";
import type { ModifierFactory } from "./update-operators.ts";
import type { Modifier } from "./update-paths.ts";

type PushClauses = {
  each: readonly unknown[];
  position: number | undefined;
  slice: number | undefined;
  sort: ((a: unknown, b: unknown) => number) | undefined;
};

export const push: ModifierFactory = (operand, _path, target) => {
  const clauses = pushClauses(operand);
  return {
    isCreating: true,
    apply(current, path) {
      if (current !== undefined && !Array.isArray(current)) {
        throw badValue(
          `The field '${path}' must be an array but is of type ${typeName(current)} in document {_id: ${showValue(target.id)}}`,
        );
      }
      return pushed(current ?? [], clauses);
    },
  };
};

/** The order of the steps is MongoDB's: insert at the position, sort, slice. */
function pushed(current: readonly unknown[], { each, position, slice, sort }: PushClauses): unknown[] {
  const array = [...current];
  array.splice(position === undefined ? array.length : position, 0, ...each);
  if (sort !== undefined) array.sort(sort);
  if (slice === undefined) return array;
  return slice < 0 ? array.slice(slice) : array.slice(0, slice);
}

function pushClauses(operand: unknown): PushClauses {
  if (!isOperatorDocument(operand) || !("$each" in operand)) {
    return { each: [operand], position: undefined, slice: undefined, sort: undefined };
  }
  const unknown = Object.keys(operand).find((name) => !["$each", "$slice", "$sort", "$position"].includes(name));
  if (unknown !== undefined) throw badValue(`Unrecognized clause in $push: ${unknown}`);
  const each: unknown = operand.$each;
  if (!Array.isArray(each)) {
    throw badValue(`The argument to $each in $push must be an array but it was of type: ${typeName(each)}`);
  }
  return {
    each,
    position: integerClause("position", operand.$position),
    slice: integerClause("slice", operand.$slice),
    sort: "$sort" in operand ? elementComparator(operand.$sort) : undefined,
  };
}

function integerClause(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  const integer = toSafeInteger(value);
  if (integer !== undefined) return integer;
  throw badValue(`The value for $${name} must be an integer value but was given type: ${typeName(value)}`);
}

/** `$sort: 1` orders whole elements; `$sort: { field: 1 }` orders documents by their fields, others as if without. */
function elementComparator(order: unknown): (a: unknown, b: unknown) => number {
  if (isDocument(order) && bsonTag(order) === undefined) {
    if (Object.keys(order).length === 0)
      throw badValue("The $sort pattern is empty when it should be a set of fields.");
    const compare = sortComparator(order);
    return (a, b) => compare(isDocument(a) ? a : {}, isDocument(b) ? b : {});
  }
  const direction = numberKind(order) === undefined ? 0 : toDouble(order);
  if (direction !== 1 && direction !== -1) throw badValue("The $sort element value must be either 1 or -1");
  const compare = sortComparator({ value: direction });
  return (a, b) => compare({ value: a }, { value: b });
}

export const addToSet: ModifierFactory = (operand) => {
  const isEach = isOperatorDocument(operand) && "$each" in operand;
  const each: unknown = isEach ? operand.$each : [operand];
  if (!Array.isArray(each)) {
    throw typeMismatch(`The argument to $each in $addToSet must be an array but it was of type ${typeName(each)}`);
  }
  const unknown = isEach ? Object.keys(operand).find((name) => name !== "$each") : undefined;
  if (unknown !== undefined) throw badValue(`Found unexpected fields after $each in $addToSet: ${unknown}`);
  return {
    isCreating: true,
    apply(current, path) {
      if (current !== undefined && !Array.isArray(current)) {
        throw badValue(
          `Cannot apply $addToSet to non-array field. Field named '${path.split(".").at(-1)}' has non-array type ${typeName(current)}`,
        );
      }
      const array: unknown[] = [...(current ?? [])];
      for (const item of each) {
        if (!array.some((member) => equalValues(member, item))) array.push(item);
      }
      return array;
    },
  };
};

export const pull: ModifierFactory = (operand) => culling("$pull", pullTest(operand));

/** A document is a query on the elements that are documents, operators are a query on the element itself. */
function pullTest(operand: unknown): (element: unknown) => boolean {
  if (isRegex(operand)) return compileValueTest(operand);
  if (!isDocument(operand) || bsonTag(operand) !== undefined) return (element) => equalValues(element, operand);
  const [first = ""] = Object.keys(operand);
  if (isOperatorDocument(operand) && !["$and", "$or", "$nor"].includes(first)) return compileValueTest(operand);
  const matches = compileMatcher(operand);
  return (element) => isDocument(element) && matches(element);
}

export const pullAll: ModifierFactory = (operand) => {
  if (!Array.isArray(operand)) {
    throw badValue(`$pullAll requires an array argument but was given a ${typeName(operand)}`);
  }
  return culling("$pullAll", (element) => operand.some((member: unknown) => equalValues(member, element)));
};

function culling(name: string, isUnwanted: (element: unknown) => boolean): Modifier {
  return {
    isCreating: false,
    apply(current) {
      if (current === undefined) return undefined;
      if (!Array.isArray(current)) throw badValue(`Cannot apply ${name} to a non-array value`);
      return current.filter((element: unknown) => !isUnwanted(element));
    },
  };
}

export const pop: ModifierFactory = (operand, path) => {
  const end = numberKind(operand) === undefined ? undefined : toDouble(operand);
  if (end === undefined) throw failedToParse(`Expected a number in: ${showElement(path, operand)}`);
  if (end !== 1 && end !== -1) throw failedToParse(`$pop expects 1 or -1, found: ${showValue(operand)}`);
  return {
    isCreating: false,
    apply(current) {
      if (current === undefined) return undefined;
      if (!Array.isArray(current)) {
        throw typeMismatch(`Path '${path}' contains an element of non-array type '${typeName(current)}'`);
      }
      return end === 1 ? current.slice(0, -1) : current.slice(1);
    },
  };
};
