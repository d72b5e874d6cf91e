import type { StatementSync } from "node:sqlite";
import type { Document } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import { compileFilter } from "../query/filter.ts";
import { readTextDefinition } from "../search/text-definition.ts";
import { makeTextIndex, type TextIndex } from "../search/text-index.ts";
import { readVectorDefinition } from "../search/vector-definition.ts";
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

/** A declared index. `_id_` has one too, whose keys are a column of the documents' own table. */
export type Index = {
  id: number;
  name: string;
  /** As `listIndexes` shows it. */
  spec: Document;
  paths: readonly string[];
  isDescending: readonly boolean[];
  isUnique: boolean;
  isSparse: boolean;
  partialFilter: Document | undefined;
  /** Whether a document belongs into a partial index. */
  covers: ((document: Document) => boolean) | undefined;
  expireAfterSeconds: number | undefined;
  /** Bit n is set once a document had several keys because of path n. It is never cleared. */
  multikey: number;
  /** Gone with its collection: a cursor that still stands in it ends with an error. */
  isDropped: boolean;
  keys: KeyStatements;
  insertKey: StatementSync | undefined;
  deleteKey: StatementSync | undefined;
  findOther: StatementSync | undefined;
  markMultikey: StatementSync | undefined;
};

export type SearchIndex = { id: number; name: string; definition: Document } & (
  | { type: "vectorSearch"; vectors: VectorIndex }
  | { type: "search"; text: TextIndex }
);

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
    indexes: [openIdIndex(storage, row.id)],
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

function openIdIndex(storage: Storage, collectionId: number): Index {
  const rows = (order: string) =>
    prepareRows(storage.sqlite, `SELECT id, rid, doc FROM c${collectionId} WHERE ${order} LIMIT ?`);
  return {
    ...describeIndex({ v: 2, key: { _id: 1 }, name: "_id_" }),
    id: 0,
    isUnique: true,
    multikey: 0,
    keys: {
      forward: rows("(id, rid) > (?, ?) AND id < ? ORDER BY id, rid"),
      backward: rows("(id, rid) < (?, ?) AND id >= ? ORDER BY id DESC, rid DESC"),
      count: prepareRows(storage.sqlite, `SELECT count(*) FROM c${collectionId} WHERE id >= ? AND id < ?`),
    },
    insertKey: undefined,
    deleteKey: undefined,
    findOther: undefined,
    markMultikey: undefined,
  };
}

/** A declared index of a row of the catalogue. */
export function openIndex(
  storage: Storage,
  collectionId: number,
  row: { id: number; spec: Document; multikey: number },
): Index {
  const { sqlite } = storage;
  const table = `i${row.id}`;
  const rows = (order: string) =>
    prepareRows(
      sqlite,
      `SELECT i.key, i.rid, c.doc FROM ${table} i CROSS JOIN c${collectionId} c ON c.rid = i.rid WHERE ${order} LIMIT ?`,
    );
  return {
    ...describeIndex(row.spec),
    id: row.id,
    multikey: row.multikey,
    keys: {
      forward: rows("(i.key, i.rid) > (?, ?) AND i.key < ? ORDER BY i.key, i.rid"),
      backward: rows("(i.key, i.rid) < (?, ?) AND i.key >= ? ORDER BY i.key DESC, i.rid DESC"),
      count: prepareRows(sqlite, `SELECT count(*) FROM ${table} WHERE key >= ? AND key < ?`),
    },
    insertKey: sqlite.prepare(`INSERT INTO ${table} (key, rid) VALUES (?, ?)`),
    deleteKey: sqlite.prepare(`DELETE FROM ${table} WHERE key = ? AND rid = ?`),
    findOther: prepareRows(sqlite, `SELECT rid FROM ${table} WHERE key = ? AND rid <> ? LIMIT 1`),
    markMultikey: sqlite.prepare("UPDATE indexes SET multikey = ? WHERE id = ?"),
  };
}

function describeIndex(spec: Document) {
  const key = spec.key as Record<string, number>; // checked when the index was created
  const partialFilter = spec.partialFilterExpression as Document | undefined; // likewise
  return {
    name: String(spec.name),
    spec,
    paths: Object.keys(key),
    isDescending: Object.values(key).map((direction) => Number(direction) < 0),
    isUnique: spec.unique === true,
    isSparse: spec.sparse === true,
    isDropped: false,
    partialFilter,
    covers: partialFilter === undefined ? undefined : compileFilter(partialFilter),
    expireAfterSeconds: spec.expireAfterSeconds === undefined ? undefined : Number(spec.expireAfterSeconds),
  };
}

/** A search index of a row of the catalogue. */
export function openSearchIndex(
  storage: Storage,
  collection: Collection,
  row: { id: number; name: string; type: string; definition: Document },
): SearchIndex {
  const base = { id: row.id, name: row.name, definition: row.definition };
  if (row.type === "vectorSearch") {
    return {
      ...base,
      type: "vectorSearch",
      vectors: makeVectorIndex({
        definition: readVectorDefinition(row.definition),
        read: (after, count) => readRows(collection, after, count),
      }),
    };
  }
  return {
    ...base,
    type: "search",
    text: makeTextIndex({
      storage,
      id: row.id,
      definition: readTextDefinition(row.definition),
      read: () => allRows(collection),
    }),
  };
}

/** Drops what a search index keeps in the file. */
export function dropSearchTables(index: SearchIndex): void {
  if (index.type === "search") index.text.drop();
}

/** The next rows after one, in the order of insertion. */
export function readRows(
  collection: Collection,
  afterRid: number,
  count: number,
): { rid: number; bytes: Uint8Array }[] {
  const rows = collection.scan.all(afterRid, count) as unknown as [number, Uint8Array][]; // prepared as arrays
  return rows.map(([rid, bytes]) => ({ rid, bytes }));
}

/** How many rows are read at a time: few at first, for those who want only one; more as the reading goes on. */
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
