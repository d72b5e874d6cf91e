import { located, notOffered, typeMismatch } from "../command-error.ts";
import { type Document, isDocument } from "./bson-types.ts";
import { encodeKey, encodeValue } from "./index-keys.ts";
import { hasPlace, valuesAt } from "./path-values.ts";

/** MongoDB's order, that of index keys. https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/ */
export function compareValues(a: unknown, b: unknown): number {
  if (a === b) return 0;
  // The usual types need no keys. NaN is neither less nor greater, and is left to them.
  if ((typeof a === "number" && typeof b === "number") || (a instanceof Date && b instanceof Date)) {
    if (a < b) return -1;
    if (a > b) return 1;
  }
  return Buffer.compare(encodeValue(a), encodeValue(b));
}

/** The order of documents: paths and directions, the first path first. */
export type Sort = Record<string, 1 | -1>;

/** A sort specification, undefined for none. @throws CommandError 14 or a number without a name when malformed, 238. */
export function readSort(value: unknown): Sort | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isDocument(value)) throw typeMismatch("Expected field sort to be of type object");
  const fields = Object.entries(value).map(([path, direction]) => [path, readDirection(path, direction)] as const);
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

function readDirection(path: string, direction: unknown): 1 | -1 {
  if (path.split(".").includes("")) throw located(15998, "FieldPath field names may not be empty strings.");
  if (hasPlace(path)) throw notOffered("a sort by a place in an array");
  if (isDocument(direction)) throw notOffered(`a sort by ${Object.keys(direction)[0]}`);
  if (direction === 1 || direction === -1) return direction;
  throw located(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)");
}

/** Bytes that compare as documents do. An array counts by its smallest element going up, by its largest going down. */
export function sortKey(document: Document, sort: Sort): Buffer {
  const directions = Object.values(sort);
  const values = Object.keys(sort).map((path, at) => firstOf(valuesAt(document, path), directions[at] === -1));
  return encodeKey(
    values,
    directions.map((direction) => direction === -1),
  );
}

function firstOf(values: readonly unknown[], isDescending: boolean): unknown {
  if (values.length === 1) return values[0];
  return values.reduce((first, value) => (compareValues(value, first) < 0 === isDescending ? first : value));
}
