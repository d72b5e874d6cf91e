import type { Document } from "../bson/bson-types.ts";
import { encodeDocument, maxDocumentBytes } from "../bson/codec.ts";
import { encodeValue } from "../bson/index-keys.ts";
import { valuesAt } from "../bson/path-values.ts";
import { type CommandError, commandError, showValue } from "../command-error.ts";
import type { Collection, Index } from "./collection.ts";
import { type IndexEntries, indexEntries } from "./index-entries.ts";
import type { Storage } from "./storage.ts";

/** A stored document: its row, its bytes, and the document itself, decoded when first asked for. */
export type Row = { rid: number; bytes: Uint8Array; document(): Document };

/**
 * Stores a new document with its index keys. Everything that can refuse it is checked before anything is written, so
 * that a refused document leaves no trace.
 * @throws CommandError 11000 when a unique index has its key, 10334 when it is too large.
 */
export function insertDocument(storage: Storage, collection: Collection, document: Document, bytes: Uint8Array): void {
  checkSize(bytes);
  const idKey = encodeValue(document._id);
  const entries: IndexEntries[] = [];
  for (let at = 1; at < collection.indexes.length; at++) {
    const index = indexAt(collection, at);
    const entry = indexEntries(index, document);
    if (index.isUnique) {
      const conflict = findConflict(index, entry, 0);
      if (conflict !== undefined) {
        checkId(collection, document, idKey);
        throw duplicateOf(collection, index, document);
      }
    }
    entries.push(entry);
  }
  storage.beginWrite();
  const { changes, lastInsertRowid } = collection.insert.run(idKey, bytes);
  if (changes === 0) throw duplicateOf(collection, indexAt(collection, 0), document);
  const rid = Number(lastInsertRowid);
  entries.forEach((entry, at) => {
    const index = indexAt(collection, at + 1);
    for (const key of entry.keys) index.insertKey?.run(key, rid);
    noteMultikey(index, entry.multikey);
  });
  for (const { files } of collection.searchIndexes) files.insert(rid, document);
}

/**
 * Writes a new version of a stored document. Answers its bytes, undefined when nothing has changed.
 * @throws CommandError as `insertDocument`; the `_id` must be the same, which the caller has seen to.
 */
export function replaceDocument(
  storage: Storage,
  collection: Collection,
  row: Row,
  next: Document,
): Uint8Array | undefined {
  const bytes = encodeDocument(next);
  checkSize(bytes);
  if (Buffer.compare(bytes, row.bytes) === 0) return undefined;
  const before = row.document();
  const changes: { index: Index; old: IndexEntries; next: IndexEntries }[] = [];
  for (let at = 1; at < collection.indexes.length; at++) {
    const index = indexAt(collection, at);
    if (index.covers === undefined && hasSameFields(index, before, next)) continue;
    const change = { index, old: indexEntries(index, before), next: indexEntries(index, next) };
    if (index.isUnique && findConflict(index, change.next, row.rid) !== undefined) {
      throw duplicateOf(collection, index, next);
    }
    changes.push(change);
  }
  storage.beginWrite();
  collection.replace.run(bytes, row.rid);
  for (const { index, old, next: entries } of changes) moveKeys(index, row.rid, old, entries);
  for (const { files } of collection.searchIndexes) files.replace(row.rid, before, next);
  return bytes;
}

/** Removes a stored document and its index keys. */
export function removeDocument(storage: Storage, collection: Collection, row: Row): void {
  storage.beginWrite();
  if (collection.indexes.length > 1 || collection.searchIndexes.length > 0) {
    const document = row.document();
    for (let at = 1; at < collection.indexes.length; at++) {
      const index = indexAt(collection, at);
      for (const key of indexEntries(index, document).keys) index.deleteKey?.run(key, row.rid);
    }
    for (const { files } of collection.searchIndexes) files.remove(row.rid, document);
  }
  collection.remove.run(row.rid);
}

/** Files one stored document in a new index. @throws CommandError 11000 when the index is unique and has its key. */
export function fileDocument(collection: Collection, index: Index, row: Row): void {
  const entry = indexEntries(index, row.document());
  if (index.isUnique && findConflict(index, entry, row.rid) !== undefined) {
    throw duplicateOf(collection, index, row.document());
  }
  for (const key of entry.keys) index.insertKey?.run(key, row.rid);
  noteMultikey(index, entry.multikey);
}

function indexAt(collection: Collection, at: number): Index {
  const index = collection.indexes[at];
  if (index === undefined) throw new RangeError(`The collection has no index number ${at}`);
  return index;
}

function checkSize(bytes: Uint8Array): void {
  if (bytes.length <= maxDocumentBytes) return;
  throw commandError(
    "BSONObjectTooLarge",
    `BSONObj size: ${bytes.length} is invalid. Size must be between 0 and ${maxDocumentBytes}(16MB)`,
  );
}

function findConflict(index: Index, entries: IndexEntries, ownRid: number): unknown {
  for (const key of entries.keys) {
    const other = index.findOther?.get(key, ownRid);
    if (other !== undefined) return other;
  }
  return undefined;
}

function checkId(collection: Collection, document: Document, idKey: Uint8Array): void {
  if (collection.byId.get(idKey) !== undefined) throw duplicateOf(collection, indexAt(collection, 0), document);
}

/** 11000: a unique index has this key already. */
function duplicateOf({ namespace }: Collection, index: Index, document: Document): CommandError {
  const keyValue = Object.fromEntries(index.paths.map((path) => [path, valuesAt(document, path)[0] ?? null]));
  const shown = Object.entries(keyValue).map(([path, value]) => `${path}: ${showValue(value)}`);
  return commandError(
    "DuplicateKey",
    `E11000 duplicate key error collection: ${namespace} index: ${index.name} dup key: { ${shown.join(", ")} }`,
    { keyPattern: index.spec.key, keyValue },
  );
}

/** Whether the fields that the index files are the very same values: then its keys need not be made to be compared. */
function hasSameFields(index: Index, before: Document, next: Document): boolean {
  for (const path of index.paths) {
    const dot = path.indexOf(".");
    const root = dot < 0 ? path : path.slice(0, dot);
    if (before[root] !== next[root]) return false;
  }
  return true;
}

function moveKeys(index: Index, rid: number, old: IndexEntries, next: IndexEntries): void {
  for (const key of old.keys) {
    if (!next.keys.some((kept) => kept.equals(key))) index.deleteKey?.run(key, rid);
  }
  for (const key of next.keys) {
    if (!old.keys.some((kept) => kept.equals(key))) index.insertKey?.run(key, rid);
  }
  noteMultikey(index, next.multikey);
}

function noteMultikey(index: Index, multikey: number): void {
  if ((index.multikey | multikey) === index.multikey) return;
  index.multikey |= multikey;
  index.markMultikey?.run(index.multikey, index.id);
}
