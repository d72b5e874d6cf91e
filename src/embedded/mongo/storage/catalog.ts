import { decodeDocument } from "../bson/bson-reader.ts";
import type { Document } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { commandError } from "../command-error.ts";
import {
  asBytes,
  type Collection,
  type Index,
  openCollection,
  openIndex,
  openSearchIndex,
  type SearchIndex,
  type SearchIndexSpec,
} from "./collection.ts";
import type { Storage } from "./storage.ts";

export type Catalog = {
  find(db: string, name: string): Collection | undefined;
  /** The collection, created when it does not exist. */
  ensure(db: string, name: string): Collection;
  drop(collection: Collection): void;
  list(db: string): Collection[];
  /** Those of all databases. */
  all(): Collection[];
  addIndex(collection: Collection, spec: Document): Index;
  addSearchIndex(collection: Collection, spec: SearchIndexSpec): SearchIndex;
  /** Reads everything from the file again: after a rollback memory may know what the file does not. */
  reload(): void;
};

/** What of the catalogue is in memory: collections by database and name. */
type State = { storage: Storage; databases: Map<string, Map<string, Collection>> };

/** Reads the catalogue of the data file. */
export function openCatalog(storage: Storage): Catalog {
  const state: State = { storage, databases: new Map() };
  const { databases } = state;
  const catalog: Catalog = {
    find: (db, name) => databases.get(db)?.get(name),
    ensure: (db, name) => catalog.find(db, name) ?? createCollection(state, db, name),
    drop: (collection) => dropCollection(state, collection),
    list: (db) => [...(databases.get(db)?.values() ?? [])],
    all: () => [...databases.values()].flatMap((collections) => [...collections.values()]),
    addIndex: (collection, spec) => addIndex(storage, collection, spec),
    addSearchIndex: (collection, input) => addSearchIndex(storage, collection, input),
    reload: () => {
      databases.clear();
      for (const collection of loadCollections(storage)) remember(state, collection);
    },
  };
  catalog.reload();
  return catalog;
}

function remember({ databases }: State, collection: Collection): void {
  const collections = databases.get(collection.db) ?? new Map<string, Collection>();
  collections.set(collection.name, collection);
  databases.set(collection.db, collections);
}

function dropCollection(state: State, collection: Collection): void {
  const { sqlite, beginWrite } = state.storage;
  beginWrite();
  for (const { text } of collection.searchIndexes) text?.drop();
  for (const index of collection.indexes) if (index.id > 0) sqlite.exec(`DROP TABLE i${index.id}`);
  sqlite.exec(`DROP TABLE c${collection.id}`);
  sqlite.prepare("DELETE FROM indexes WHERE collection = ?").run(collection.id);
  sqlite.prepare("DELETE FROM search_indexes WHERE collection = ?").run(collection.id);
  sqlite.prepare("DELETE FROM collections WHERE id = ?").run(collection.id);
  collection.isDropped = true;
  for (const index of collection.indexes) index.isDropped = true;
  const collections = state.databases.get(collection.db);
  collections?.delete(collection.name);
  if (collections?.size === 0) state.databases.delete(collection.db);
}

function addIndex(storage: Storage, collection: Collection, spec: Document): Index {
  storage.beginWrite();
  const { lastInsertRowid } = storage.sqlite
    .prepare("INSERT INTO indexes (collection, name, spec) VALUES (?, ?, ?)")
    .run(collection.id, String(spec.name), encodeDocument(spec));
  const id = Number(lastInsertRowid);
  storage.sqlite.exec(
    `CREATE TABLE i${id} (key BLOB NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (key, rid)) WITHOUT ROWID`,
  );
  const index = openIndex(storage, collection.id, { id, spec, multikey: 0 });
  collection.indexes.push(index);
  return index;
}

function addSearchIndex(storage: Storage, collection: Collection, input: SearchIndexSpec): SearchIndex {
  storage.beginWrite();
  const { lastInsertRowid } = storage.sqlite
    .prepare("INSERT INTO search_indexes (collection, name, type, definition) VALUES (?, ?, ?, ?)")
    .run(collection.id, input.name, input.type, encodeDocument(input.definition));
  const index = openSearchIndex(storage, collection, { ...input, id: Number(lastInsertRowid) });
  collection.searchIndexes.push(index);
  return index;
}

function checkName(db: string, name: string): void {
  const isBad = name === "" || name.startsWith(".") || name.endsWith(".") || name.includes("$") || name.includes("\0");
  if (isBad) throw commandError("InvalidNamespace", `Invalid namespace specified '${db}.${name}'`);
}

/** `options` and `uuid` are columns of an earlier version. */
function createCollection(state: State, db: string, name: string): Collection {
  checkName(db, name);
  const { sqlite, beginWrite } = state.storage;
  beginWrite();
  const { lastInsertRowid } = sqlite
    .prepare("INSERT INTO collections (db, name, options, uuid) VALUES (?, ?, x'', x'')")
    .run(db, name);
  const id = Number(lastInsertRowid);
  sqlite.exec(`CREATE TABLE c${id} (rid INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, doc BLOB NOT NULL)`);
  const collection = openCollection(state.storage, { id, db, name });
  remember(state, collection);
  return collection;
}

function loadCollections(storage: Storage): Collection[] {
  const { sqlite } = storage;
  const indexesOf = sqlite.prepare("SELECT id, spec, multikey FROM indexes WHERE collection = ? ORDER BY id");
  const searchIndexesOf = sqlite.prepare(
    "SELECT id, name, type, definition FROM search_indexes WHERE collection = ? ORDER BY id",
  );
  return sqlite
    .prepare("SELECT id, db, name FROM collections ORDER BY id")
    .all()
    .map((row) => {
      const collection = openCollection(storage, { id: Number(row.id), db: String(row.db), name: String(row.name) });
      for (const index of indexesOf.all(collection.id)) {
        const spec = decodeDocument(asBytes(index.spec));
        const opened = { id: Number(index.id), spec, multikey: Number(index.multikey) };
        collection.indexes.push(openIndex(storage, collection.id, opened));
      }
      for (const index of searchIndexesOf.all(collection.id)) {
        const definition = decodeDocument(asBytes(index.definition));
        const input = { id: Number(index.id), name: String(index.name), type: String(index.type), definition };
        collection.searchIndexes.push(openSearchIndex(storage, collection, input));
      }
      return collection;
    });
}
