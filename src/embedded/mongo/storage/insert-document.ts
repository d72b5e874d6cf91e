import { ObjectId } from "bson";
import type { Document } from "../bson/bson-types.ts";
import { decodeReceived, encodeDocument } from "../bson/codec.ts";
import { commandError, typeMismatch } from "../command-error.ts";

/** The document as it is stored: with an `_id`, which comes first. The bytes of the client are kept when they are so. */
export function readInsert(raw: unknown): { document: Document; bytes: Uint8Array } {
  if (!(raw instanceof Uint8Array)) throw typeMismatch("BSON field 'insert.documents' expects documents");
  const document = decodeReceived(raw);
  const [first] = Object.keys(document);
  if (first === "_id") {
    checkId(document._id);
    return { document, bytes: raw };
  }
  const id: unknown = Object.hasOwn(document, "_id") ? document._id : new ObjectId();
  checkId(id);
  const { _id, ...rest } = document;
  const ordered: Document = { _id: id, ...rest };
  return { document: ordered, bytes: encodeDocument(ordered) };
}

/** Refuses what cannot be an `_id`. @throws CommandError 53. */
export function checkId(id: unknown): void {
  const type = Array.isArray(id) ? "array" : id === undefined ? "undefined" : undefined;
  if (type !== undefined) throw commandError("InvalidIdField", `The '_id' value cannot be of type ${type}`);
}
