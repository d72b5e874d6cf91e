import { BSONError, BSONRegExp, type Document, Double, deserialize, Int32, serialize } from "bson";
import { readDocument } from "./bson-reader.ts";
import { commandError } from "./command-error.ts";

export type { Document };

/** The largest document MongoDB stores, in bytes. */
export const maxDocumentBytes = 16 * 1024 * 1024;

const receivedOptions = {
  promoteValues: false,
  promoteLongs: false,
  bsonRegExp: true,
  validation: { utf8: true },
} as const;

/**
 * Decodes a stored document so that writing it again gives the same bytes: a Long stays a `Long`, a double that
 * JavaScript would write as an int32 stays a `Double`; every other number is a plain number. With `wanted`, only the
 * fields of those names are read.
 */
export function decodeDocument(bytes: Uint8Array, wanted?: ReadonlySet<string>): Document {
  return readDocument(bytes, unwrapRare, wanted);
}

function unwrapRare(value: unknown): unknown {
  if (typeof value === "object" && value !== null) unwrapNumbers({ value });
  return unwrap(value);
}

/**
 * The same for bytes from a client; `rawFields` are left as bytes (arrays: of each item).
 * @throws CommandError 22 when they are not BSON, or hold text that is not UTF-8.
 */
export function decodeReceived(bytes: Uint8Array, rawFields?: Record<string, boolean>): Document {
  try {
    const options = rawFields ? { ...receivedOptions, fieldsAsRaw: rawFields } : receivedOptions;
    const document = deserialize(bytes, options);
    unwrapNumbers(document);
    return document;
  } catch (error) {
    if (BSONError.isBSONError(error) || error instanceof RangeError) throw commandError("InvalidBSON", error.message);
    throw error;
  }
}

/**
 * BSON of `document`; fields that are undefined are left out.
 * @throws CommandError 10334 when it is far too large to be written at all.
 */
export function encodeDocument(document: Document): Uint8Array {
  try {
    return serialize(document, { ignoreUndefined: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // the library's room for one document is 17 MiB
    throw commandError(
      "BSONObjectTooLarge",
      `BSONObj size is invalid. It must be between 0 and ${maxDocumentBytes}(16MB)`,
    );
  }
}

/** MongoDB's limit of documents inside documents. */
const maxDepth = 180;

function unwrapNumbers(container: Document | unknown[], depth = 0): void {
  if (depth > maxDepth) {
    throw commandError("Overflow", `BSONObj exceeds maximum nested object depth: ${maxDepth}`);
  }
  for (const key in container) {
    const value = (container as Document)[key]; // an array's items are reached by their keys too
    if (typeof value !== "object" || value === null) continue;
    const kind: unknown = value._bsontype;
    if (kind === undefined) {
      if (value instanceof Uint8Array || value instanceof Date) continue;
      unwrapNumbers(value, depth + 1);
    } else if (typeof kind === "string") {
      const plain = unwrap(value);
      if (plain !== value) assign(container as Document, key, plain);
    } else {
      unwrapNumbers(value, depth + 1); // a document with a field of that name
    }
  }
}

function unwrap(value: unknown): unknown {
  if (value instanceof Int32) return value.value;
  if (value instanceof Double) return isWrittenAsInt32(value.value) ? value : value.value;
  if (value instanceof BSONRegExp) return toRegExp(value);
  return value;
}

function isWrittenAsInt32(value: number): boolean {
  return (value | 0) === value && !Object.is(value, -0);
}

function toRegExp(value: BSONRegExp): RegExp | BSONRegExp {
  if (!/^[imsu]*$/.test(value.options)) return value;
  try {
    return new RegExp(value.pattern, value.options);
  } catch {
    return value; // a pattern that only PCRE knows: whoever uses it refuses it
  }
}

function assign(container: Document, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    container[key] = value;
  }
}
