import { located, notOffered, typeMismatch } from "../command-error.ts";
import { canonicalType, canonicalTypeOf, type Document, isDocument } from "./bson-types.ts";
import { compareNumbers, numberKind, toDouble } from "./numbers.ts";
import { hasPlace, valuesAt } from "./path-values.ts";

/**
 * MongoDB's order of any two BSON values: first by type, then by value; numbers of all types compare with each other.
 * `undefined` stands for a missing field and comes before null; a caller to whom both are one (a sort, an index key)
 * turns it into null first. https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 */
export function compareValues(a: unknown, b: unknown): number {
  if (a === b) return 0; // NaN is the one value that is not identical to itself, and is compared below
  if (typeof a === "string" && typeof b === "string") return compareStrings(a, b);
  const typeA = canonicalTypeOf(a);
  const typeB = canonicalTypeOf(b);
  return typeA === typeB ? compareSameType(typeA, a, b) : typeA < typeB ? -1 : 1;
}

/** Whether two values are equal for queries, unique keys and groups: 1, 1.0 and Long 1 are; `{a, b}` and `{b, a}` are not. */
export function equalValues(a: unknown, b: unknown): boolean {
  return compareValues(a, b) === 0;
}

function compareSameType(type: number, a: unknown, b: unknown): number {
  switch (type) {
    case canonicalType.number:
      return compareNumbers(a, b);
    case canonicalType.string:
      return compareStrings(String(a), String(b));
    case canonicalType.object:
      return compareDocuments(a as Document, b as Document); // by their type
    case canonicalType.array:
      return compareArrays(a, b);
    case canonicalType.binary:
      return compareBinaries(toBinary(a), toBinary(b));
    case canonicalType.objectId:
      return compareStrings(String(a), String(b));
    case canonicalType.boolean:
      return a === false ? -1 : 1;
    case canonicalType.date:
      return Math.sign(Number(a) - Number(b));
    default:
      return 0; // null and missing: one value each
  }
}

/** The order of the UTF-8 bytes, which is that of the code points; UTF-16 units order surrogates before U+E000. */
function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at += 1) {
    const unitA = a.charCodeAt(at);
    const unitB = b.charCodeAt(at);
    if (unitA !== unitB) return codePointRank(unitA) < codePointRank(unitB) ? -1 : 1;
  }
  return a.length < b.length ? -1 : 1;
}

/** Moves the surrogates (the astral characters) behind the rest of the basic plane. */
function codePointRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
}

/** Field by field in their order: the type of the values, then the names, then the values; a prefix comes first. */
function compareDocuments(a: Document, b: Document): number {
  const namesA = Object.keys(a);
  const namesB = Object.keys(b);
  const shorter = Math.min(namesA.length, namesB.length);
  for (let at = 0; at < shorter; at += 1) {
    const nameA = namesA[at] ?? "";
    const nameB = namesB[at] ?? "";
    const byType = canonicalTypeOf(a[nameA]) - canonicalTypeOf(b[nameB]);
    const order = byType || compareStrings(nameA, nameB) || compareValues(a[nameA], b[nameB]);
    if (order !== 0) return Math.sign(order);
  }
  return Math.sign(namesA.length - namesB.length);
}

function compareArrays(a: unknown, b: unknown): number {
  const left: readonly unknown[] = Array.isArray(a) ? a : [];
  const right: readonly unknown[] = Array.isArray(b) ? b : [];
  const shorter = Math.min(left.length, right.length);
  for (let at = 0; at < shorter; at += 1) {
    const order = compareValues(left[at], right[at]);
    if (order !== 0) return order;
  }
  return Math.sign(left.length - right.length);
}

type BinaryParts = { subtype: number; bytes: Uint8Array };

/** By length, then subtype, then bytes. */
function compareBinaries(a: BinaryParts, b: BinaryParts): number {
  const order = a.bytes.length - b.bytes.length || a.subtype - b.subtype;
  return Math.sign(order || Buffer.compare(a.bytes, b.bytes));
}

function toBinary(value: unknown): BinaryParts {
  const { sub_type, buffer, position } = value as { sub_type: number; buffer: Uint8Array; position: number }; // a Binary, by its tag
  return { subtype: sub_type, bytes: buffer.subarray(0, position) };
}

/** The order of documents: paths and directions, the first path first. */
export type Sort = Record<string, 1 | -1>;

/** A sort specification, undefined for none. @throws CommandError 14 or a number without a name for what is none, 238 for what is not offered. */
export function readSort(value: unknown): Sort | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isDocument(value)) throw typeMismatch("Expected field sort to be of type object");
  const fields = Object.entries(value).map(([path, given]) => [checkSortPath(path), readDirection(given)] as const);
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

function checkSortPath(path: string): string {
  if (path.split(".").includes("")) throw located(15998, "FieldPath field names may not be empty strings.");
  if (hasPlace(path)) throw notOffered("a sort by a place in an array");
  return path;
}

function readDirection(value: unknown): 1 | -1 {
  if (isDocument(value)) throw notOffered(`a sort by ${Object.keys(value)[0]}`);
  const direction = numberKind(value) === undefined ? undefined : toDouble(value);
  if (direction === 1 || direction === -1) return direction;
  throw located(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)");
}

/**
 * The order of documents under a sort specification as `{ a: 1, "b.c": -1 }`. An array counts by its smallest element
 * going up and its largest going down, an empty array comes before null, a missing field counts as null. Ties keep
 * their order, because JavaScript's sort is stable.
 */
export function sortComparator(sort: Sort): (a: Document, b: Document) => number {
  const fields = Object.entries(sort);
  return (a, b) => {
    for (const [path, sign] of fields) {
      const order = compareSortKeys(sortKey(a, path, sign), sortKey(b, path, sign));
      if (order !== 0) return order * sign;
    }
    return 0;
  };
}

/** The value that stands for a document in a sort; the marker stands for an empty array. */
function sortKey(document: Document, path: string, sign: 1 | -1): unknown {
  const isPlain = !path.includes(".");
  const own: unknown = isPlain ? document[path] : undefined;
  if (isPlain && !Array.isArray(own)) return own ?? null;
  const values = valuesAt(document, path);
  if (values.length === 1) return toSortKey(values[0]);
  return values.map(toSortKey).reduce((best, value) => (compareSortKeys(value, best) * sign < 0 ? value : best));
}

const emptyArray = Symbol("an empty array in a sort");

function toSortKey(value: unknown): unknown {
  return Array.isArray(value) && value.length === 0 ? emptyArray : (value ?? null);
}

function compareSortKeys(a: unknown, b: unknown): number {
  if (a === emptyArray || b === emptyArray) return a === b ? 0 : a === emptyArray ? -1 : 1;
  return compareValues(a, b);
}
