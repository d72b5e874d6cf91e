import { BSONError, DBRef, deserialize, serialize } from "bson";
import { commandError, notOffered } from "../command-error.ts";
import { bsonTag, type Document, isStoredClass, setField } from "./bson-types.ts";

/** The largest document MongoDB stores, in bytes. */
export const maxDocumentBytes = 16 * 1024 * 1024;

const storedOptions = { validation: { utf8: false } } as const;
const receivedOptions = { bsonRegExp: true, validation: { utf8: true } } as const;

/**
 * Decodes bytes from a client, as `decodeDocument` has them; `rawFields` are left as bytes (arrays: of each item).
 * @throws CommandError 22 when they are not BSON, or hold text that is not UTF-8; 238 for a type that is not stored.
 */
export function decodeReceived(bytes: Uint8Array, rawFields?: Record<string, boolean>): Document {
  try {
    const options = rawFields ? { ...receivedOptions, fieldsAsRaw: rawFields } : receivedOptions;
    const document = deserialize(bytes, options);
    checkValues(document);
    return document;
  } catch (error) {
    if (BSONError.isBSONError(error) || error instanceof RangeError) throw commandError("InvalidBSON", error.message);
    throw error;
  }
}

/** Decodes a stored document, every number as a plain one: whatever is stored was checked when it arrived. */
export function decodeDocument(stored: Uint8Array): Document {
  const document = deserialize(stored, storedOptions);
  checkValues(document); // for what the library takes for references
  return document;
}

/** BSON without the fields that are undefined. @throws CommandError 10334 when it is far too large to be written. */
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

/** Refuses values of types that are not stored, and makes plain documents of what the library takes for references. */
function checkValues(container: Document | unknown[], depth = 0): void {
  if (depth > maxDepth) {
    throw commandError("Overflow", `BSONObj exceeds maximum nested object depth: ${maxDepth}`);
  }
  for (const key in container) {
    let value: unknown = (container as Document)[key]; // an array's items are reached by their keys too
    if (typeof value !== "object" || value === null || value instanceof Date || ArrayBuffer.isView(value)) continue;
    if (value instanceof DBRef) {
      value = value.toJSON();
      setField(container as Document, key, value);
    }
    const tag = bsonTag(Object(value));
    if (tag === undefined) checkValues(Object(value), depth + 1);
    else if (!isStoredClass(tag)) throw notOffered(`values of type ${tag}`);
  }
}
