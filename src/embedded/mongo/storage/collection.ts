import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Document } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import { compileFilter } from "../query/filter.ts";
import { readTextDefinition, readVectorDefinition } from "../search/definitions.ts";
import { makeTextIndex, type TextIndex } from "../search/text-index.ts";
import { makeVectorIndex, type VectorIndex } from "../search/vector-index.ts";
import { prepareRows, type Storage } from "./storage.ts";

/** Statements over one b-tree of keys; a row is `[key, rid, document]`. */
export type KeyStatements = {
  /** (after key, after rid, below key, how many) in ascending order. */
  forward: StatementSync;
  /** (before key, before rid, from key, how many) in descending order. */
  backward: StatementSync;
  /** (from key, below key): how many rows. */
  count: StatementSync;
};

/** A declared index. `_id_` has one too, whose keys are a column of the documents' own table and need no writes. */
export type Index = ReturnType<typeof describeIndex> & {
  id: number;
  /** Bit n is set once a document had several keys because of path n. It is never cleared. */
  multikey: number;
  keys: KeyStatements;
  insertKey?: StatementSync;
  deleteKey?: StatementSync;
  findOther?: StatementSync;
  markMultikey?: StatementSync;
};

/** A search index of a row of the catalogue. Of `vectors` and `text` it has the one of its type, in which it `files`. */
export type SearchIndex = SearchIndexRow & {
  vectors?: VectorIndex;
  text?: TextIndex;
  files: Pick<VectorIndex | TextIndex, "insert" | "replace" | "remove">;
};
export type SearchIndexRow = SearchIndexSpec & { id: number };
export type SearchIndexSpec = { name: string; type: string; definition: Document };

export type Collection = {
  id: number;
  db: string;
  name: string;
  namespace: string;
  /** `_id_` first. */
  indexes: Index[];
  searchIndexes: SearchIndex[];
  isDropped: boolean;
  byId: StatementSync;
  byRid: StatementSync;
  /** (rid), a row `[key of its _id]`. */
  idOf: StatementSync;
  /** (after rid, how many), rows `[rid, document]`. */
  scan: StatementSync;
  countAll: StatementSync;
  insert: StatementSync;
  replace: StatementSync;
  remove: StatementSync;
};

/** A BLOB column's value. */
export function asBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new TypeError("The data file holds something else than a BLOB where a BLOB belongs");
}

type CollectionRow = { id: number; db: string; name: string };

/** The collection of a row of the catalogue, with its statements. */
export function openCollection(storage: Storage, row: CollectionRow): Collection {
  const { sqlite } = storage;
  const table = `c${row.id}`;
  const rows = (sql: string) => prepareRows(sqlite, sql);
  return {
    ...row,
    namespace: `${row.db}.${row.name}`,
    indexes: [openIndex(storage, row.id, idIndex)],
    searchIndexes: [],
    isDropped: false,
    byId: rows(`SELECT rid, doc FROM ${table} WHERE id = ?`),
    byRid: rows(`SELECT doc FROM ${table} WHERE rid = ?`),
    idOf: rows(`SELECT id FROM ${table} WHERE rid = ?`),
    scan: rows(`SELECT rid, doc FROM ${table} WHERE rid > ? ORDER BY rid LIMIT ?`),
    countAll: rows(`SELECT count(*) FROM ${table}`),
    insert: sqlite.prepare(`INSERT INTO ${table} (id, doc) VALUES (?, ?) ON CONFLICT DO NOTHING`),
    replace: sqlite.prepare(`UPDATE ${table} SET doc = ? WHERE rid = ?`),
    remove: sqlite.prepare(`DELETE FROM ${table} WHERE rid = ?`),
  };
}

type IndexRow = { id: number; spec: Document; multikey: number };
const idIndex: IndexRow = { id: 0, spec: { v: 2, key: { _id: 1 }, name: "_id_", unique: true }, multikey: 0 };

/** A declared index of a row of the catalogue. */
export function openIndex({ sqlite }: Storage, collectionId: number, row: IndexRow): Index {
  const { id, spec, multikey } = row;
  const documents = `c${collectionId}`;
  if (id === 0) {
    const keys = { ...prepareKeys(sqlite, documents, "c.id", "c.rid"), count: prepareCount(sqlite, documents, "id") };
    return { ...describeIndex(spec), id, multikey, keys };
  }
  const table = `i${id}`;
  const joined = `${table} i CROSS JOIN ${documents}`;
  return {
    ...describeIndex(spec),
    id,
    multikey,
    keys: { ...prepareKeys(sqlite, joined, "i.key", "i.rid"), count: prepareCount(sqlite, table, "key") },
    insertKey: sqlite.prepare(`INSERT INTO ${table} (key, rid) VALUES (?, ?)`),
    deleteKey: sqlite.prepare(`DELETE FROM ${table} WHERE key = ? AND rid = ?`),
    findOther: prepareRows(sqlite, `SELECT rid FROM ${table} WHERE key = ? AND rid <> ? LIMIT 1`),
    markMultikey: sqlite.prepare("UPDATE indexes SET multikey = ? WHERE id = ?"),
  };
}

function prepareKeys(sqlite: DatabaseSync, source: string, key: string, rid: string) {
  const rows = (where: string) =>
    prepareRows(sqlite, `SELECT ${key}, ${rid}, c.doc FROM ${source} c WHERE c.rid = ${rid} AND ${where} LIMIT ?`);
  return {
    forward: rows(`(${key}, ${rid}) > (?, ?) AND ${key} < ? ORDER BY ${key}, ${rid}`),
    backward: rows(`(${key}, ${rid}) < (?, ?) AND ${key} >= ? ORDER BY ${key} DESC, ${rid} DESC`),
  };
}

function prepareCount(sqlite: DatabaseSync, source: string, key: string): StatementSync {
  return prepareRows(sqlite, `SELECT count(*) FROM ${source} WHERE ${key} >= ? AND ${key} < ?`);
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
    /** Gone with its collection: a cursor that still stands in it ends with an error. */
    isDropped: false,
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
  const text = makeTextIndex({
    storage,
    id,
    definition: readTextDefinition(definition),
    read: () => allRows(collection),
  });
  return { ...row, text, files: text };
}

/** The next rows after one, in the order of insertion. */
function readRows(collection: Collection, afterRid: number, count: number): { rid: number; bytes: Uint8Array }[] {
  const rows = collection.scan.all(afterRid, count) as unknown as [number, Uint8Array][]; // prepared as arrays
  return rows.map(([rid, bytes]) => ({ rid, bytes }));
}

/** How many rows are read at a time: few at first, since one may be enough; more as the reading continues. */
export const firstChunk = 4;
export const largestChunk = 256;

/** Every row of the collection in the order of insertion, read in chunks so that no statement stays open. */
export function* allRows(collection: Collection): Generator<{ rid: number; bytes: Uint8Array }> {
  let after = 0;
  for (let size = firstChunk; ; size = Math.min(size * 4, largestChunk)) {
    if (collection.isDropped) throw commandError("QueryPlanKilled", `collection dropped: ${collection.namespace}`);
    const rows = readRows(collection, after, size);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    after = last.rid;
  }
}
