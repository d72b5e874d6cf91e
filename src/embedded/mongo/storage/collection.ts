import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Document } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import { compileFilter } from "../query/filter.ts";
import { readTextDefinition, readVectorDefinition } from "../search/definitions.ts";
import { makeTextIndex, type TextIndex } from "../search/text-index.ts";
import { makeVectorIndex, type VectorIndex } from "../search/vector-index.ts";
import { type FollowingIndex, makeRow, prepareRows, type Row, type Storage } from "./storage.ts";

/** What queries use of an index. That of `_id` has its keys in a column of the documents' own table. */
export type KeyIndex = ReturnType<typeof describeIndex> & {
  /** Bit n is set once a document had several keys because of path n. It is never cleared. */
  multikey: number;
  keys: ReturnType<typeof prepareKeys>;
};

/** A declared index, which has a table of its own. */
export type Index = KeyIndex & {
  id: number;
  /** How often a key came or went. */
  changes: number;
  /** (key, rid) */
  insertKey: StatementSync;
  /** (key, rid) */
  deleteKey: StatementSync;
  /** (key, rid): a row with that key and another rid. */
  findOther: StatementSync;
  /** (multikey, id) */
  markMultikey: StatementSync;
};

export type SearchIndexSpec = { name: string; type: string; definition: Document };
type SearchIndexRow = SearchIndexSpec & { id: number };

/** A search index. Of `vectors` and `text` it has the one of its type, in which it `files`. */
export type SearchIndex = SearchIndexRow & {
  vectors?: VectorIndex;
  text?: TextIndex;
  files: FollowingIndex;
};

export type Collection = ReturnType<typeof openCollection>;

/** A BLOB column's value. */
export function asBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new TypeError("The data file holds something else than a BLOB where a BLOB belongs");
}

/** A document as it was given: a large one is in the last column, which SQLite reads only when it is asked for. */
const wholeDoc = "ifnull(c.whole, c.doc)";

/** The collection of a row of the catalogue, with its statements. */
export function openCollection({ sqlite }: Storage, row: { id: number; db: string; name: string }) {
  const table = `c${row.id}`;
  const rows = (sql: string) => prepareRows(sqlite, sql);
  const idSpec = { v: 2, key: { _id: 1 }, name: "_id_", unique: true };
  const idKeys = { from: `${table} c`, key: "c.id", rid: "c.rid" };
  const idIndex: KeyIndex = { ...describeIndex(idSpec), multikey: 0, keys: prepareKeys(sqlite, idKeys) };
  const indexes: Index[] = []; // the declared ones
  const searchIndexes: SearchIndex[] = [];
  return {
    ...row,
    namespace: `${row.db}.${row.name}`,
    idIndex,
    indexes,
    searchIndexes,
    /** A cursor that still stands in it ends with an error. */
    isDropped: false,
    /** Bytes of a whole row, and of one without its large fields, by the rows that were read last. */
    rowBytes: [0, 0] as [number, number],
    /** Fields that are large in some document, whose `doc` has not got them; its `whole` has all fields. */
    largeFields: new Set<string>(),
    /** (1: without large fields, key of its _id), a row `[rid, document]`. */
    byId: rows(`SELECT rid, iif(?, c.doc, ${wholeDoc}) FROM ${table} c WHERE id = ?`),
    byRid: rows(`SELECT ${wholeDoc} FROM ${table} c WHERE rid = ?`),
    /** (rid), a row `[key of its _id]`. */
    idOf: rows(`SELECT id FROM ${table} WHERE rid = ?`),
    /** (after rid, how many), rows `[rid, document]`. */
    scan: rows(`SELECT rid, ${wholeDoc} FROM ${table} c WHERE rid > ? ORDER BY rid LIMIT ?`),
    countAll: rows(`SELECT count(*) FROM ${table}`),
    /** (key of its _id, doc, whole) */
    insert: sqlite.prepare(`INSERT INTO ${table} (id, doc, whole) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`),
    /** (doc, whole, rid) */
    replace: sqlite.prepare(`UPDATE ${table} SET doc = ?, whole = ? WHERE rid = ?`),
    noteLarge: sqlite.prepare("INSERT OR IGNORE INTO large_fields (collection, name) VALUES (?, ?)"),
    remove: sqlite.prepare(`DELETE FROM ${table} WHERE rid = ?`),
  };
}

/** A declared index of a row of the catalogue. */
export function openIndex(
  { sqlite }: Storage,
  collectionId: number,
  row: { id: number; spec: Document; multikey: number },
): Index {
  const table = `i${row.id}`;
  const keys = { from: `${table} i`, join: `CROSS JOIN c${collectionId} c`, key: "i.key", rid: "i.rid" };
  return {
    ...describeIndex(row.spec),
    id: row.id,
    changes: 0,
    multikey: row.multikey,
    keys: prepareKeys(sqlite, keys),
    insertKey: sqlite.prepare(`INSERT INTO ${table} (key, rid) VALUES (?, ?)`),
    deleteKey: sqlite.prepare(`DELETE FROM ${table} WHERE key = ? AND rid = ?`),
    findOther: prepareRows(sqlite, `SELECT rid FROM ${table} WHERE key = ? AND rid <> ? LIMIT 1`),
    markMultikey: sqlite.prepare("UPDATE indexes SET multikey = ? WHERE id = ?"),
  };
}

type KeySource = { from: string; join?: string; key: string; rid: string };

/** Statements over one b-tree of keys, joined with the documents `c`; rows are `[key, rid, document]`. */
function prepareKeys(sqlite: DatabaseSync, { from, join = "", key, rid }: KeySource) {
  const columns = `${key}, ${rid}, iif(?, c.doc, ${wholeDoc})`;
  const rows = (where: string) =>
    prepareRows(sqlite, `SELECT ${columns} FROM ${from} ${join} WHERE c.rid = ${rid} AND ${where} LIMIT ?`);
  return {
    /** (1: without large fields, after key, after rid, below key, how many) in ascending order. */
    forward: rows(`(${key}, ${rid}) > (?, ?) AND ${key} < ? ORDER BY ${key}, ${rid}`),
    /** (1: without large fields, before key, before rid, from key, how many) in descending order. */
    backward: rows(`(${key}, ${rid}) < (?, ?) AND ${key} >= ? ORDER BY ${key} DESC, ${rid} DESC`),
    /** (from key, below key): how many rows. */
    count: prepareRows(sqlite, `SELECT count(*) FROM ${from} WHERE ${key} >= ? AND ${key} < ?`),
  };
}

/** What an index is, by its specification, which was checked when it was created. */
function describeIndex(spec: Document) {
  const partialFilter = spec.partialFilterExpression as Document | undefined;
  return {
    name: String(spec.name),
    spec,
    paths: Object.keys(spec.key),
    isDescending: Object.values(spec.key).map((direction) => direction === -1),
    isUnique: spec.unique === true,
    isSparse: spec.sparse === true,
    partialFilter,
    /** Whether a document belongs in a partial index. */
    covers: partialFilter === undefined ? undefined : compileFilter(partialFilter),
    expireAfterSeconds: spec.expireAfterSeconds === undefined ? undefined : Number(spec.expireAfterSeconds),
  };
}

/** A search index of a row of the catalogue. */
export function openSearchIndex(storage: Storage, collection: Collection, row: SearchIndexRow): SearchIndex {
  const { id, type, definition } = row;
  if (type === "vectorSearch") {
    const read = (after: number, count: number) => readRows(collection, after, count);
    const vectors = makeVectorIndex(readVectorDefinition(definition), read);
    return { ...row, vectors, files: vectors };
  }
  const read = () => allRows(collection);
  const text = makeTextIndex({ storage, id, definition: readTextDefinition(definition), read });
  return { ...row, text, files: text };
}

/** The next rows after one, in the order of insertion. */
function readRows(collection: Collection, afterRid: number, count: number): Row[] {
  const rows = collection.scan.all(afterRid, count) as unknown as [number, Uint8Array][]; // prepared as arrays
  return rows.map(([rid, bytes]) => makeRow(rid, bytes));
}

/** How many rows are read at a time: few at first, since one may be enough; more as the reading continues. */
export const firstChunk = 4;
export const largestChunk = 256;

/** Bytes that are read at a time, about: rows of large documents are read a few at a time, so that others may come between. */
const chunkBytes = 1 << 20;

/** How many rows to read next, of `size` that may be: as many as are not too large, by the rows that were read last. */
export const chunkOf = ({ rowBytes }: Collection, size: number, isBrief: 0 | 1): number =>
  Math.max(1, Math.min(size, Math.floor(chunkBytes / Math.max(1, rowBytes[isBrief]))));

/** Notes how large the rows are that were read just now. */
export function noteBytes({ rowBytes }: Collection, rows: readonly Row[], isBrief: 0 | 1): void {
  if (rows.length > 0) rowBytes[isBrief] = rows.reduce((sum, { bytes }) => sum + bytes.length, 0) / rows.length;
}

/** Every row of the collection in the order of insertion, read in chunks so that no statement stays open. */
export function* allRows(collection: Collection): Generator<Row> {
  let after = 0;
  for (let most = firstChunk; ; most = Math.min(most * 4, largestChunk)) {
    checkThere(collection);
    const size = chunkOf(collection, most, 0);
    const rows = readRows(collection, after, size);
    noteBytes(collection, rows, 0);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    after = last.rid;
  }
}

/** @throws CommandError 175 when the collection is dropped. */
export function checkThere({ isDropped, namespace }: Collection): void {
  if (isDropped) throw commandError("QueryPlanKilled", `collection dropped: ${namespace}`);
}

/** The document of that row, undefined when it is gone. @throws CommandError 175 when the collection is dropped. */
export function readRow(collection: Collection, rid: number): Row | undefined {
  checkThere(collection);
  const found = collection.byRid.get(rid) as unknown as [Uint8Array] | undefined; // prepared to give arrays
  return found && makeRow(rid, found[0]);
}
