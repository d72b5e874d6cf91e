import { BSONError, type DBRef, Double, deserialize, Int32, serialize } from "bson";
import { commandError, notOffered } from "../command-error.ts";
import { type Document, isInt32, isStoredClass, setField } from "./bson-types.ts";

/** The largest document MongoDB stores, in bytes. */
export const maxDocumentBytes = 16 * 1024 * 1024;

const receivedOptions = {
  promoteValues: false,
  promoteLongs: false,
  bsonRegExp: true,
  validation: { utf8: true },
} as const;

/**
 * Decodes bytes from a client, with numbers as `decodeDocument` has them; `rawFields` are left as bytes (arrays: of each item).
 * @throws CommandError 22 when they are not BSON, or hold text that is not UTF-8; 238 for a type that is not stored.
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
      const plain = unwrap(kind, value);
      if (plain !== value) setField(container as Document, key, plain);
      if (kind === "DBRef") unwrapNumbers(plain as Document, depth + 1); // by its tag
    } else {
      unwrapNumbers(value, depth + 1); // a document with a field of that name
    }
  }
}

function unwrap(kind: string, value: unknown): unknown {
  if (value instanceof Int32) return value.value;
  if (value instanceof Double) return isInt32(value.value) ? value : value.value;
  if (kind === "DBRef") return (value as DBRef).toJSON(); // the library takes `{ $ref, $id }` for one; here it is data
  if (isStoredClass(kind)) return value;
  throw notOffered(`values of type ${kind}`);
}
