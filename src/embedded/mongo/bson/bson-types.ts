import type { Document } from "bson";

export type { Document };

/** The tag of `bson`'s value classes, or undefined for anything else: a document's own field of that name is data. */
export function bsonTag(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("_bsontype" in value)) return undefined;
  if (Object.hasOwn(value, "_bsontype")) return undefined;
  const tag = value._bsontype;
  return typeof tag === "string" ? tag : undefined;
}

/** Whether the value is an embedded document: not an array, a date, or a value class of `bson`. */
export function isDocument(value: unknown): value is Document {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return !(value instanceof Date) && !ArrayBuffer.isView(value) && bsonTag(value) === undefined;
}

/** Places of the types in MongoDB's comparison order; values of types with one place compare with each other. */
export const canonicalType = {
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
} as const;

/** Of `bson`'s value classes, those that are stored, by their tags; others are refused where they arrive. */
const storedClasses: Readonly<Record<string, { name: string; order: number }>> = {
  Long: { name: "long", order: canonicalType.number },
  Int32: { name: "int", order: canonicalType.number },
  Double: { name: "double", order: canonicalType.number },
  Binary: { name: "binData", order: canonicalType.binary },
  ObjectId: { name: "objectId", order: canonicalType.objectId },
};

export const isStoredClass = (tag: string) => Object.hasOwn(storedClasses, tag);

/** The place of the value's type in the comparison order. `undefined` is a missing field. */
export function canonicalTypeOf(value: unknown): number {
  switch (typeof value) {
    case "undefined":
      return canonicalType.missing;
    case "number":
      return canonicalType.number;
    case "string":
      return canonicalType.string;
    case "boolean":
      return canonicalType.boolean;
    default:
      if (value === null) return canonicalType.null;
      if (Array.isArray(value)) return canonicalType.array;
      if (value instanceof Date) return canonicalType.date;
      return storedClasses[bsonTag(value) ?? ""]?.order ?? canonicalType.object;
  }
}

const typeNames: Readonly<Record<number, string>> = {
  ...Object.fromEntries(Object.entries(canonicalType).map(([name, order]) => [order, name])),
  [canonicalType.boolean]: "bool",
};

/** The type's name as MongoDB's messages have it; a missing field is `missing`. */
export function typeName(value: unknown): string {
  if (typeof value === "number") return isInt32(value) ? "int" : "double";
  return storedClasses[bsonTag(value) ?? ""]?.name ?? typeNames[canonicalTypeOf(value)] ?? "object";
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
  if (!isDocument(value)) return value;
  const copy: Document = {};
  for (const name of Object.keys(value)) setField(copy, name, cloneValue(value[name]));
  return copy;
}
