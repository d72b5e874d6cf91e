import type { Document } from "bson";

export type { Document };

/** The tag of `bson`'s value classes, or undefined for anything else: a document's own field of that name is data. */
export function bsonTag(value: object): string | undefined {
  if (!("_bsontype" in value) || Object.hasOwn(value, "_bsontype")) return undefined;
  return typeof value._bsontype === "string" ? value._bsontype : undefined;
}

/** Whether the value is an embedded document: not an array, a date, or a value class of `bson`. */
export function isDocument(value: unknown): value is Document {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return !(value instanceof Date) && !ArrayBuffer.isView(value) && bsonTag(value) === undefined;
}

/** The types that are stored, in MongoDB's comparison order. Each is the byte that begins the index keys of its values. */
export const typeByte = {
  null: 0x05,
  number: 0x0a,
  string: 0x0f,
  object: 0x14,
  array: 0x19,
  binData: 0x1e,
  objectId: 0x28,
  bool: 0x2d,
  date: 0x32,
} as const;

/** The byte of the value's type. A missing field (undefined) counts as null. */
export function typeByteOf(value: unknown): number {
  switch (typeof value) {
    case "number":
      return typeByte.number;
    case "string":
      return typeByte.string;
    case "boolean":
      return typeByte.bool;
    case "undefined":
      return typeByte.null;
    default:
      if (value === null) return typeByte.null;
      if (Array.isArray(value)) return typeByte.array;
      if (value instanceof Date) return typeByte.date;
      return classBytes[bsonTag(Object(value)) ?? ""] ?? typeByte.object;
  }
}

/** Of `bson`'s value classes, those that are stored, by their tags. Others are refused where they arrive. */
const classBytes: Readonly<Record<string, number>> = { Binary: typeByte.binData, ObjectId: typeByte.objectId };

export const isStoredClass = (tag: string) => Object.hasOwn(classBytes, tag);

/** The type's name as MongoDB's messages have it. */
export function typeName(value: unknown): string {
  const byte = typeByteOf(value);
  if (byte === typeByte.number) return Number.isInteger(value) ? "int" : "double";
  return Object.entries(typeByte).find(([, known]) => known === byte)?.[0] ?? "";
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
