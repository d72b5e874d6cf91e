import { Binary } from "bson";
import { type Document, encodeDocument } from "../codec.ts";
import type { Collection } from "../collection.ts";
import {
  type CommandContext,
  type CommandFamily,
  checkCollation,
  collectionName,
  findCollection,
  readBoolean,
  readDocument,
} from "../command.ts";
import { commandError, notImplemented } from "../command-error.ts";
import { defaultBatchSize } from "../cursors.ts";
import { compileFilter } from "../filter.ts";

const createFields = [
  "capped",
  "autoIndexId",
  "idIndex",
  "size",
  "max",
  "storageEngine",
  "validator",
  "validationLevel",
  "validationAction",
  "indexOptionDefaults",
  "viewOn",
  "pipeline",
  "collation",
  "changeStreamPreAndPostImages",
  "timeseries",
  "clusteredIndex",
  "expireAfterSeconds",
  "encryptedFields",
  "temp",
  "flags",
]; // prettier-ignore
const refusedOptions = [
  "capped",
  "validator",
  "viewOn",
  "timeseries",
  "clusteredIndex",
  "encryptedFields",
  "changeStreamPreAndPostImages",
  "expireAfterSeconds",
]; // prettier-ignore

/** Collections and databases: create, list, drop, rename. */
export const collectionCommands: CommandFamily = {
  create: { fields: createFields, run: create },
  drop: { run: drop },
  dropDatabase: { run: dropDatabase },
  listCollections: { fields: ["filter", "nameOnly", "authorizedCollections", "cursor"], run: listCollections },
  listDatabases: { fields: ["filter", "nameOnly", "authorizedDatabases"], run: listDatabases },
  renameCollection: { fields: ["to", "dropTarget", "stayTemp"], run: renameCollection },
};

function create(context: CommandContext, body: Document): Document {
  const name = collectionName(context, "create", body.create);
  for (const option of refusedOptions) {
    if (body[option] !== undefined && body[option] !== false) throw notImplemented(`The option ${option} of create`);
  }
  checkCollation(body);
  if (context.engine.catalog.find(context.db, name) !== undefined) {
    throw commandError("NamespaceExists", `Collection ${context.db}.${name} already exists.`);
  }
  context.engine.catalog.create(context.db, name, {});
  return {};
}

function drop(context: CommandContext, body: Document): Document {
  const collection = findCollection(context, "drop", body.drop);
  if (collection === undefined) return {};
  context.engine.catalog.drop(collection);
  return { nIndexesWas: collection.indexes.length, ns: collection.namespace };
}

function dropDatabase(context: CommandContext): Document {
  const collections = context.engine.catalog.list(context.db);
  for (const collection of collections) context.engine.catalog.drop(collection);
  return collections.length === 0 ? {} : { dropped: context.db };
}

function listCollections(context: CommandContext, body: Document): Document {
  const isNameOnly = readBoolean(body, "nameOnly", false);
  const matches = compileFilter(readDocument(body, "filter"));
  const results = context.engine.catalog
    .list(context.db)
    .map((collection) => describe(collection))
    .filter(matches)
    .map((entry) => encodeDocument(isNameOnly ? { name: entry.name, type: entry.type } : entry));
  const namespace = `${context.db}.$cmd.listCollections`;
  const input = { namespace, results: results.values(), batchSize: Math.max(results.length, defaultBatchSize) };
  return { cursor: context.engine.cursors.open({ ...input, isSingleBatch: true }) };
}

function describe(collection: Collection): Document {
  return {
    name: collection.name,
    type: "collection",
    options: collection.options,
    info: { readOnly: false, uuid: new Binary(collection.uuid, Binary.SUBTYPE_UUID) },
    idIndex: { v: 2, key: { _id: 1 }, name: "_id_" },
  };
}

function listDatabases(context: CommandContext, body: Document): Document {
  if (context.db !== "admin")
    throw commandError("Unauthorized", "listDatabases may only be run against the admin database.");
  const matches = compileFilter(readDocument(body, "filter"));
  const entries: Document[] = context.engine.catalog
    .databases()
    .toSorted()
    .map((name) => ({ name, sizeOnDisk: 0, empty: false }))
    .filter(matches);
  const databases = readBoolean(body, "nameOnly", false) ? entries.map(({ name }) => ({ name })) : entries;
  return { databases, totalSize: 0, totalSizeMb: 0 };
}

function renameCollection(context: CommandContext, body: Document): Document {
  const { catalog } = context.engine;
  if (context.db !== "admin") {
    throw commandError("Unauthorized", "renameCollection may only be run against the admin database.");
  }
  const from = splitNamespace(body.renameCollection);
  const to = splitNamespace(body.to);
  const collection = catalog.find(from.db, from.name);
  if (collection === undefined) {
    throw commandError("NamespaceNotFound", `Source collection ${from.db}.${from.name} does not exist`);
  }
  const target = catalog.find(to.db, to.name);
  if (target === collection) throw commandError("IllegalOperation", "Can't rename a collection to itself");
  if (target !== undefined) {
    if (!readBoolean(body, "dropTarget", false)) throw commandError("NamespaceExists", "target namespace exists");
    catalog.drop(target);
  }
  catalog.rename(collection, to.db, to.name);
  return {};
}

function splitNamespace(value: unknown): { db: string; name: string } {
  const dot = typeof value === "string" ? value.indexOf(".") : -1;
  if (typeof value !== "string" || dot <= 0) {
    throw commandError("InvalidNamespace", `Invalid namespace specified '${String(value)}'`);
  }
  return { db: value.slice(0, dot), name: value.slice(dot + 1) };
}
