import type { SQLInputValue } from "node:sqlite";
import type { Document } from "../bson/bson-types.ts";
import { decodeDocument, encodeDocument } from "../bson/codec.ts";
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

/** The collections of all databases, in memory. */
export type Catalog = ReturnType<typeof openCatalog>;

/** Reads the catalogue of the data file. */
export function openCatalog(storage: Storage) {
  const collections = new Map<string, Collection>(); // by namespace
  const remember = (collection: Collection) => {
    collections.set(collection.namespace, collection);
    return collection;
  };
  const find = (db: string, name: string) => collections.get(`${db}.${name}`);
  /** Reads everything from the file again: after a rollback memory may know what the file does not. */
  const reload = () => {
    collections.clear();
    loadCollections(storage).forEach(remember);
  };
  reload();
  return {
    find,
    reload,
    /** The collection, created when it does not exist. */
    ensure: (db: string, name: string) => find(db, name) ?? remember(createCollection(storage, db, name)),
    drop: (collection: Collection) => {
      dropCollection(storage, collection);
      collections.delete(collection.namespace);
    },
    list: () => [...collections.values()],
  };
}

/** `options` and `uuid` are columns of an earlier version. */
function createCollection(storage: Storage, db: string, name: string): Collection {
  if (/^$|^\.|\.$|[$\0]/.test(name))
    throw commandError("InvalidNamespace", `Invalid namespace specified '${db}.${name}'`);
  const id = addRow(storage, "collections (db, name, options, uuid) VALUES (?, ?, x'', x'')", [db, name]);
  const columns = "rid INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, doc BLOB NOT NULL, whole BLOB";
  storage.sqlite.exec(`CREATE TABLE c${id} (${columns})`);
  return openCollection(storage, { id, db, name });
}

function dropCollection({ sqlite, beginWrite }: Storage, collection: Collection): void {
  beginWrite();
  for (const { text } of collection.searchIndexes) text?.drop();
  for (const { id } of collection.indexes) sqlite.exec(`DROP TABLE i${id}`);
  sqlite.exec(`DROP TABLE c${collection.id}`);
  for (const table of ["indexes", "search_indexes", "large_fields"])
    sqlite.prepare(`DELETE FROM ${table} WHERE collection = ?`).run(collection.id);
  sqlite.prepare("DELETE FROM collections WHERE id = ?").run(collection.id);
  collection.isDropped = true;
}

/** Makes an index without keys. It is the caller who files documents in it, and then adds it to the collection's own. */
export function createIndex(storage: Storage, collection: Collection, spec: Document): Index {
  const row = [collection.id, String(spec.name), encodeDocument(spec)];
  const id = addRow(storage, "indexes (collection, name, spec) VALUES (?, ?, ?)", row);
  storage.sqlite.exec(
    `CREATE TABLE i${id} (key BLOB NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (key, rid)) WITHOUT ROWID`,
  );
  return openIndex(storage, collection.id, { id, spec, multikey: 0 });
}

/** Makes a search index over what is in the collection. It is the caller who adds it to the collection's own. */
export function createSearchIndex(storage: Storage, collection: Collection, spec: SearchIndexSpec): SearchIndex {
  const row = [collection.id, spec.name, spec.type, encodeDocument(spec.definition)];
  const id = addRow(storage, "search_indexes (collection, name, type, definition) VALUES (?, ?, ?, ?)", row);
  return openSearchIndex(storage, collection, { ...spec, id });
}

/** Opens a search index by another definition, which is kept from now on. */
export function redefineSearchIndex(storage: Storage, collection: Collection, row: SearchIndexSpec & { id: number }) {
  storage.beginWrite();
  const update = storage.sqlite.prepare("UPDATE search_indexes SET definition = ? WHERE id = ?");
  update.run(encodeDocument(row.definition), row.id);
  return openSearchIndex(storage, collection, row);
}

/** Adds a row to a table of the catalogue, and answers its id. */
function addRow({ sqlite, beginWrite }: Storage, into: string, values: SQLInputValue[]): number {
  beginWrite();
  return Number(sqlite.prepare(`INSERT INTO ${into}`).run(...values).lastInsertRowid);
}

function loadCollections(storage: Storage): Collection[] {
  const { sqlite } = storage;
  const indexesOf = sqlite.prepare("SELECT id, spec, multikey FROM indexes WHERE collection = ? ORDER BY id");
  const searchIndexesOf = sqlite.prepare(
    "SELECT id, name, type, definition FROM search_indexes WHERE collection = ? ORDER BY id",
  );
  const largeOf = sqlite.prepare("SELECT name FROM large_fields WHERE collection = ?");
  const rows = sqlite.prepare("SELECT id, db, name FROM collections ORDER BY id").all();
  return rows.map((row) => {
    const hasWhole = sqlite.prepare("SELECT 1 FROM pragma_table_info(?) WHERE name = 'whole'").get(`c${row.id}`);
    if (!hasWhole) sqlite.exec(`ALTER TABLE c${row.id} ADD COLUMN whole BLOB`); // a file of an earlier layout
    const collection = openCollection(storage, { id: Number(row.id), db: String(row.db), name: String(row.name) });
    for (const { name } of largeOf.all(collection.id)) collection.largeFields.add(String(name));
    for (const { id, spec, multikey } of indexesOf.all(collection.id)) {
      const opened = { id: Number(id), spec: decodeDocument(asBytes(spec)), multikey: Number(multikey) };
      collection.indexes.push(openIndex(storage, collection.id, opened));
    }
    for (const { id, name, type, definition } of searchIndexesOf.all(collection.id)) {
      const opened = { id: Number(id), name: String(name), type: String(type) };
      const read = { ...opened, definition: decodeDocument(asBytes(definition)) };
      collection.searchIndexes.push(openSearchIndex(storage, collection, read));
    }
    return collection;
  });
}
