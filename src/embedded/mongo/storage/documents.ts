import type { StatementSync } from "node:sqlite";
import { type Document, getField } from "../bson/bson-types.ts";
import { encodeDocument, maxDocumentBytes } from "../bson/codec.ts";
import { encodeKey, encodeValue } from "../bson/index-keys.ts";
import { rootOf, valuesAt } from "../bson/path-values.ts";
import { withoutLarge } from "../bson/stored-fields.ts";
import { type CommandError, commandError, showValue } from "../command-error.ts";
import type { Collection, Index, KeyIndex } from "./collection.ts";
import type { Row, Storage } from "./storage.ts";

/**
 * Stores a new document with its index keys. Everything that can refuse it is checked before anything is written, so
 * that a refused document leaves no trace.
 * @throws CommandError 11000 when a unique index has its key, 10334 when it is too large, 171 for parallel arrays, 14031
 * when the disk is full.
 */
export function insertDocument(storage: Storage, collection: Collection, document: Document, bytes: Uint8Array): void {
  checkSize(bytes);
  const idKey = encodeValue(document._id);
  const filed = collection.indexes.map((index) => ({ index, entries: indexEntries(index, document) }));
  for (const { index, entries } of filed) {
    if (!hasConflict(index, entries, 0)) continue;
    const isSameId = collection.byId.get(1, idKey) !== undefined;
    throw duplicateOf(collection, isSameId ? collection.idIndex : index, document);
  }
  storage.requireRoom();
  storage.beginWrite();
  const { changes, lastInsertRowid } = collection.insert.run(idKey, ...divide(collection, bytes));
  if (changes === 0) throw duplicateOf(collection, collection.idIndex, document);
  const rid = Number(lastInsertRowid);
  for (const { index, entries } of filed) addKeys(index, rid, entries);
  for (const { files } of collection.searchIndexes) files.insert(rid, document);
}

/** Answers the new bytes, undefined for no change. @throws CommandError as `insertDocument`; `_id` must be the same. */
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
  const changes = collection.indexes
    .filter((index) => index.covers !== undefined || !hasSameFields(index, before, next))
    .map((index) => ({ index, old: indexEntries(index, before), entries: indexEntries(index, next) }));
  for (const { index, entries } of changes) {
    if (hasConflict(index, entries, row.rid)) throw duplicateOf(collection, index, next);
  }
  storage.beginWrite();
  collection.replace.run(...divide(collection, bytes), row.rid);
  for (const { index, old, entries } of changes) {
    removeKeys(index, row.rid, old, entries.keys);
    addKeys(index, row.rid, entries, old.keys);
  }
  for (const { files } of collection.searchIndexes) files.replace(row.rid, before, next);
  return bytes;
}

/** A document above this is large, in bytes, and so is a field above the second: lists that do not show it do not read it. */
const largeDocument = 16 << 10;
const largeField = 4 << 10;

/** What stands in the columns `doc` and `whole` of a document. Notes which fields are not in `doc`. */
function divide(collection: Collection, bytes: Uint8Array): [doc: Uint8Array, whole: Uint8Array | null] {
  if (bytes.length <= largeDocument) return [bytes, null];
  const { brief, large } = withoutLarge(bytes, largeField);
  for (const name of large) {
    if (!collection.largeFields.has(name)) collection.noteLarge.run(collection.id, name);
    collection.largeFields.add(name);
  }
  return large.length === 0 ? [bytes, null] : [brief, bytes];
}

/** Removes a stored document and its index keys. */
export function removeDocument(storage: Storage, collection: Collection, row: Row): void {
  storage.beginWrite();
  for (const index of collection.indexes) removeKeys(index, row.rid, indexEntries(index, row.document()));
  for (const { files } of collection.searchIndexes) files.remove(row.rid, row.document());
  collection.remove.run(row.rid);
}

/** Files one stored document in a new index. @throws CommandError 11000 when the index is unique and has its key. */
export function fileDocument(collection: Collection, index: Index, row: Row): void {
  const entries = indexEntries(index, row.document());
  if (hasConflict(index, entries, row.rid)) throw duplicateOf(collection, index, row.document());
  addKeys(index, row.rid, entries);
}

function checkSize({ length }: Uint8Array): void {
  if (length <= maxDocumentBytes) return;
  const message = `BSONObj size: ${length} is invalid. Size must be between 0 and ${maxDocumentBytes}(16MB)`;
  throw commandError("BSONObjectTooLarge", message);
}

function hasConflict(index: Index, { keys }: IndexEntries, ownRid: number): boolean {
  return index.isUnique && keys.some((key) => index.findOther.get(key, ownRid) !== undefined);
}

/** 11000: a unique index has this key already. */
function duplicateOf({ namespace }: Collection, index: KeyIndex, document: Document): CommandError {
  const keyValue = Object.fromEntries(index.paths.map((path) => [path, valuesAt(document, path)[0] ?? null]));
  const shown = Object.entries(keyValue).map(([path, value]) => `${path}: ${showValue(value)}`);
  return commandError(
    "DuplicateKey",
    `E11000 duplicate key error collection: ${namespace} index: ${index.name} dup key: { ${shown.join(", ")} }`,
    { keyPattern: index.spec.key, keyValue },
  );
}

/** Whether the fields that the index files are the very same values: then its keys need not be made to be compared. */
function hasSameFields({ paths }: Index, before: Document, next: Document): boolean {
  return paths.every((path) => before[rootOf(path)] === next[rootOf(path)]);
}

/** Files a row under its keys, except those already `there`. */
function addKeys(index: Index, rid: number, { keys, multikey }: IndexEntries, there: readonly Buffer[] = []): void {
  for (const key of keys) if (!there.some((other) => other.equals(key))) changeKey(index, index.insertKey, key, rid);
  if ((index.multikey | multikey) === index.multikey) return;
  index.multikey |= multikey;
  index.markMultikey.run(index.multikey, index.id);
}

function removeKeys(index: Index, rid: number, { keys }: IndexEntries, kept: readonly Buffer[] = []): void {
  for (const key of keys) if (!kept.some((other) => other.equals(key))) changeKey(index, index.deleteKey, key, rid);
}

function changeKey(index: Index, statement: StatementSync, key: Buffer, rid: number): void {
  statement.run(key, rid);
  index.changes++;
}

/** The keys of a document in an index, and the bits of the paths that gave several. */
type IndexEntries = { keys: Buffer[]; multikey: number };

const none: IndexEntries = { keys: [], multikey: 0 };

/** None outside of a sparse or partial index, several by an array. @throws CommandError 171 when two paths meet one. */
function indexEntries(index: Index, document: Document): IndexEntries {
  if (index.covers?.(document) === false) return none;
  return singleKey(index, document) ?? severalKeys(index, document);
}

/** The usual case: no path is dotted and none meets an array. */
function singleKey({ paths, isSparse, isDescending }: Index, document: Document): IndexEntries | undefined {
  const values: unknown[] = [];
  let isPresent = false;
  for (const path of paths) {
    if (path.includes(".")) return undefined;
    const value = getField(document, path);
    if (Array.isArray(value)) return undefined;
    if (value !== undefined) isPresent = true;
    values.push(value);
  }
  return isSparse && !isPresent ? none : { keys: [encodeKey(values, isDescending)], multikey: 0 };
}

function severalKeys({ paths, isSparse, isDescending }: Index, document: Document): IndexEntries {
  const arrays = paths.filter((path) => Array.isArray(getField(document, rootOf(path))));
  if (arrays.length > 1)
    throw commandError("CannotIndexParallelArrays", `cannot index parallel arrays [${arrays[1]}] [${arrays[0]}]`);
  const valuesOfPaths = paths.map((path) => valuesAt(document, path));
  if (isSparse && valuesOfPaths.flat().every((value) => value === undefined)) return none;
  let multikey = 0;
  let rows: unknown[][] = [[]];
  for (const [place, values] of valuesOfPaths.entries()) {
    if (values.length > 1) multikey |= 1 << place;
    rows = rows.flatMap((row) => values.map((value) => [...row, value]));
  }
  const keys = rows.map((values) => encodeKey(values, isDescending));
  return { keys: [...new Map(keys.map((key) => [key.toString("latin1"), key])).values()], multikey };
}
