import type { Document } from "bson";

export type { Document };

/** The tag of `bson`'s value classes, or undefined for anything else: a document's own field of that name is data. */
export function bsonTag(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("_bsontype" in value)) return undefined;
  if (Object.hasOwn(value, "_bsontype")) return undefined;
  const tag = value._bsontype;
  return typeof tag === "string" ? tag : undefined;
}

/** Whether the value is an embedded document: not an array, a date, a pattern, or a value class of `bson`. */
export function isDocument(value: unknown): value is Document {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  if (value instanceof Date || value instanceof RegExp || ArrayBuffer.isView(value)) return false;
  const tag = bsonTag(value);
  return tag === undefined || tag === "DBRef";
}

/** Places of the types in MongoDB's comparison order; values of types with one place compare with each other. */
export const canonicalType = {
  minKey: -1,
  missing: 0,
  null: 5,
  number: 10,
  string: 15,
  object: 20,
  array: 25,
  binary: 30,
  objectId: 35,
  boolean: 40,
  date: 45,
  timestamp: 47,
  regex: 50,
  dbPointer: 55,
  code: 60,
  codeWithScope: 65,
  maxKey: 127,
} as const;

/** The place of the value's type in the comparison order. `undefined` is a missing field. */
export function canonicalTypeOf(value: unknown): number {
  switch (typeof value) {
    case "undefined":
      return canonicalType.missing;
    case "number":
    case "bigint":
      return canonicalType.number;
    case "string":
    case "symbol":
      return canonicalType.string;
    case "boolean":
      return canonicalType.boolean;
    default:
      return value === null ? canonicalType.null : canonicalTypeOfObject(value);
  }
}

const canonicalTypeOfTag: Record<string, number> = {
  Long: canonicalType.number,
  Int32: canonicalType.number,
  Double: canonicalType.number,
  Decimal128: canonicalType.number,
  BSONSymbol: canonicalType.string,
  DBRef: canonicalType.object,
  Binary: canonicalType.binary,
  ObjectId: canonicalType.objectId,
  Timestamp: canonicalType.timestamp,
  BSONRegExp: canonicalType.regex,
  MinKey: canonicalType.minKey,
  MaxKey: canonicalType.maxKey,
};

function canonicalTypeOfObject(value: unknown): number {
  if (Array.isArray(value)) return canonicalType.array;
  if (value instanceof Date) return canonicalType.date;
  const tag = bsonTag(value);
  if (tag === "Code") return hasScope(value) ? canonicalType.codeWithScope : canonicalType.code;
  if (tag !== undefined) return canonicalTypeOfTag[tag] ?? canonicalType.object;
  if (value instanceof RegExp) return canonicalType.regex;
  return ArrayBuffer.isView(value) ? canonicalType.binary : canonicalType.object;
}

function hasScope(value: unknown): boolean {
  return typeof value === "object" && value !== null && "scope" in value && isDocument(value.scope);
}

/** Numbers and names of the BSON types, as `$type` takes them. */
export const typeNumbers: Record<string, number> = {
  double: 1,
  string: 2,
  object: 3,
  array: 4,
  binData: 5,
  undefined: 6,
  objectId: 7,
  bool: 8,
  date: 9,
  null: 10,
  regex: 11,
  dbPointer: 12,
  javascript: 13,
  symbol: 14,
  javascriptWithScope: 15,
  int: 16,
  timestamp: 17,
  long: 18,
  decimal: 19,
  minKey: -1,
  maxKey: 127,
};

const typeNameOfTag: Record<string, string> = {
  Long: "long",
  Int32: "int",
  Double: "double",
  Decimal128: "decimal",
  BSONSymbol: "symbol",
  DBRef: "object",
  Binary: "binData",
  ObjectId: "objectId",
  Timestamp: "timestamp",
  BSONRegExp: "regex",
  MinKey: "minKey",
  MaxKey: "maxKey",
};

/** The type's name as `$type` answers it in an expression; a missing field is `missing`. */
export function typeName(value: unknown): string {
  switch (typeof value) {
    case "undefined":
      return "missing";
    case "number":
      return isInt32(value) ? "int" : "double";
    case "bigint":
      return "long";
    case "string":
      return "string";
    case "boolean":
      return "bool";
    default:
      return value === null ? "null" : typeNameOfObject(value);
  }
}

function typeNameOfObject(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value instanceof Date) return "date";
  if (value instanceof RegExp) return "regex";
  const tag = bsonTag(value);
  if (tag === "Code") return hasScope(value) ? "javascriptWithScope" : "javascript";
  if (tag !== undefined) return typeNameOfTag[tag] ?? "object";
  return ArrayBuffer.isView(value) ? "binData" : "object";
}

/** Whether a plain number is written as a 32-bit integer by `bson` (every other one is a double). */
export function isInt32(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

/** Sets a field so that a name as `__proto__` is data like any other. */
export function setField(target: Document, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[name] = value;
  }
}

/** The document's own field, never one inherited from Object's prototype. */
export function getField(source: Document, name: string): unknown {
  return Object.hasOwn(source, name) ? source[name] : undefined;
}

/** A copy whose documents and arrays are new; the leaf values are shared, because nothing here changes them. */
export function cloneValue<T>(value: T): T;
export function cloneValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => cloneValue(item));
  if (!isDocument(value) || bsonTag(value) !== undefined) return value;
  const copy: Document = {};
  for (const name of Object.keys(value)) setField(copy, name, cloneValue(value[name]));
  return copy;
}
