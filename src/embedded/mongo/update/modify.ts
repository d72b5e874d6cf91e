import { ObjectId } from "bson";
import type { Document } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { failedToParse } from "../command-error.ts";
import type { Collection } from "../storage/collection.ts";
import { insertDocument, type Row, replaceDocument } from "../storage/documents.ts";
import { checkId } from "../storage/insert-document.ts";
import type { Storage } from "../storage/storage.ts";
import { applyUpdate, isOperatorUpdate, upsertSeed } from "./update.ts";

/** One update: operators, a replacement, or a pipeline, and the filter of what it changes. */
export type Change = { update: Document | Document[]; filter: Document };

/** Refuses a change that is malformed, whether or not it will find a document. */
export function checkChange(change: Change, isMulti: boolean): void {
  if (Array.isArray(change.update)) return;
  const isReplacement = !isOperatorUpdate(change.update);
  if (isReplacement && isMulti) throw failedToParse("multi update is not supported for replacement-style update");
}

/** Changes a stored document. Answers the new bytes, undefined when nothing has changed. */
export function changeDocument(
  storage: Storage,
  collection: Collection,
  row: Row,
  change: Change,
): Uint8Array | undefined {
  return replaceDocument(storage, collection, row, applyUpdate(row.document(), change.update));
}

/** Inserts the document that an upsert makes of its filter and its change. */
export function insertUpsert(
  storage: Storage,
  collection: Collection,
  change: Change,
): { id: unknown; bytes: Uint8Array } {
  const made = applyUpdate(upsertSeed(change.filter), change.update, { isInsert: true });
  const { _id, ...rest } = made;
  const id: unknown = _id === undefined ? new ObjectId() : _id;
  checkId(id);
  const document: Document = { _id: id, ...rest };
  const bytes = encodeDocument(document);
  insertDocument(storage, collection, document, bytes);
  return { id, bytes };
}
