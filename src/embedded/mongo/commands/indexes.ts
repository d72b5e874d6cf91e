import { isDeepStrictEqual } from "node:util";
import { isDocument } from "../bson-types.ts";
import { type Document, encodeDocument } from "../codec.ts";
import { allRows, type Collection, type Index } from "../collection.ts";
import {
  type CommandContext,
  type CommandFamily,
  collectionName,
  findCollection,
  readCount,
  readDocument,
  readDocuments,
  toNumber,
} from "../command.ts";
import { CommandError, commandError } from "../command-error.ts";
import { defaultBatchSize } from "../cursors.ts";
import { fileDocument } from "../documents.ts";
import type { Engine } from "../engine.ts";
import { readIndexSpec } from "../index-spec.ts";
import { typeMismatch } from "../refusals.ts";
import { makeRow } from "../scan.ts";

/** createIndexes, listIndexes, dropIndexes, and what collMod changes of an index. */
export const indexCommands: CommandFamily = {
  createIndexes: { fields: ["indexes", "ignoreUnknownIndexOptions", "commitQuorum"], run: createIndexes },
  listIndexes: { fields: ["cursor", "includeBuildUUIDs", "includeIndexBuildInfo"], run: listIndexes },
  dropIndexes: { fields: ["index"], run: (context, body) => dropIndexes(context, body, "dropIndexes") },
  deleteIndexes: { fields: ["index"], run: (context, body) => dropIndexes(context, body, "deleteIndexes") },
  collMod: { fields: ["index"], run: collMod },
};

function createIndexes(context: CommandContext, body: Document): Document {
  const { catalog, storage } = context.engine;
  const name = collectionName(context, "createIndexes", body.createIndexes);
  const specs = readDocuments(body, "indexes").map(readIndexSpec);
  if (specs.length === 0) throw commandError("BadValue", "Must specify at least one index to create");
  const isNew = catalog.find(context.db, name) === undefined;
  const collection = catalog.ensure(context.db, name);
  const before = collection.indexes;
  const missing = specs.filter((spec, at) => isMissing(collection, spec, specs.slice(0, at)));
  try {
    storage.atomically(() => {
      collection.indexes = [...before];
      const added = missing.map((spec) => catalog.addIndex(collection, spec));
      if (added.length > 0) fillIndexes(collection, added);
    });
  } catch (error) {
    collection.indexes = before;
    throw error;
  }
  const after = collection.indexes.length;
  return {
    numIndexesBefore: before.length,
    numIndexesAfter: after,
    createdCollectionAutomatically: isNew,
    ...(missing.length === 0 ? { note: "all indexes already exist" } : {}),
  };
}

function fillIndexes(collection: Collection, indexes: readonly Index[]): void {
  for (const { rid, bytes } of allRows(collection)) {
    const row = makeRow(rid, bytes);
    for (const index of indexes) fileDocument(collection, index, row);
  }
}

/** Options that make two indexes over the same key different ones. */
const identity = (spec: Document) => [
  Object.entries(spec.key),
  spec.unique === true,
  spec.sparse === true,
  spec.partialFilterExpression,
];

/** Whether the index is still to be made. @throws CommandError 85 or 86 when it is at odds with one that exists. */
function isMissing(collection: Collection, spec: Document, others: readonly Document[]): boolean {
  const known = [...collection.indexes.map((index) => index.spec), ...others];
  const sameName = known.find((other) => other.name === spec.name);
  if (sameName !== undefined) {
    if (isDeepStrictEqual(sameName, spec)) return false;
    if (spec.name === "_id_") return false;
    if (!isDeepStrictEqual(Object.entries(sameName.key), Object.entries(spec.key))) {
      throw commandError(
        "IndexKeySpecsConflict",
        `An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: ${JSON.stringify(spec)}, existing index: ${JSON.stringify(sameName)}`,
      );
    }
    throw commandError(
      "IndexOptionsConflict",
      `An equivalent index already exists with the same name but different options. Requested index: ${JSON.stringify(spec)}, existing index: ${JSON.stringify(sameName)}`,
    );
  }
  const sameKey = known.find((other) => isDeepStrictEqual(identity(other), identity(spec)));
  if (sameKey === undefined) return true;
  throw commandError("IndexOptionsConflict", `Index already exists with a different name: ${String(sameKey.name)}`);
}

function listIndexes(context: CommandContext, body: Document): Document {
  const collection = requireCollection(context, "listIndexes", body.listIndexes);
  const results = collection.indexes.map((index) => encodeDocument(index.spec)).values();
  const batchSize = readCount(readDocument(body, "cursor"), "batchSize") ?? defaultBatchSize;
  const namespace = collection.namespace;
  return { cursor: context.engine.cursors.open({ namespace, results, batchSize, isSingleBatch: false }) };
}

function requireCollection(context: CommandContext, verb: string, value: unknown): Collection {
  const collection = findCollection(context, verb, value);
  if (collection !== undefined) return collection;
  throw commandError("NamespaceNotFound", `ns does not exist: ${context.db}.${String(value)}`);
}

function dropIndexes(context: CommandContext, body: Document, verb: string): Document {
  const collection = findCollection(context, verb, body[verb]);
  if (collection === undefined) throw commandError("NamespaceNotFound", `ns not found ${context.db}.${body[verb]}`);
  const nIndexesWas = collection.indexes.length;
  const wanted: unknown = body.index;
  const selectors: unknown[] = Array.isArray(wanted) ? wanted : [wanted];
  const doomed =
    wanted === "*" ? collection.indexes.slice(1) : selectors.map((selector) => selectIndex(collection, selector));
  for (const index of doomed) context.engine.catalog.dropIndex(collection, index);
  return { nIndexesWas };
}

function selectIndex(collection: Collection, selector: unknown): Index {
  if (typeof selector !== "string" && !isDocument(selector)) {
    throw typeMismatch("BSON field 'dropIndexes.index' is the wrong type, expected types '[string, object, array]'");
  }
  const index = collection.indexes.find(({ name, spec }) =>
    typeof selector === "string"
      ? name === selector
      : isDeepStrictEqual(Object.entries(spec.key), Object.entries(selector)),
  );
  if (index === undefined) {
    const shown = typeof selector === "string" ? `name [${selector}]` : `key: ${JSON.stringify(selector)}`;
    throw commandError("IndexNotFound", `index not found with ${shown}`);
  }
  if (index.id === 0) throw commandError("InvalidOptions", "cannot drop _id index");
  return index;
}

function collMod(context: CommandContext, body: Document): Document {
  const collection = requireCollection(context, "collMod", body.collMod);
  const change = readDocument(body, "index");
  if (Object.keys(change).length === 0) return {};
  const index = selectIndex(collection, change.name ?? change.keyPattern);
  return changeIndex(context.engine, collection, index, change);
}

function changeIndex(engine: Engine, collection: Collection, index: Index, change: Document): Document {
  const spec = { ...index.spec };
  const reply: Document = {};
  const seconds = toNumber(change.expireAfterSeconds);
  if (seconds !== undefined) {
    if (seconds < 0) throw new CommandError(2, "BadValue", "expireAfterSeconds must be a non-negative number");
    if (index.expireAfterSeconds !== undefined) reply.expireAfterSeconds_old = index.expireAfterSeconds;
    reply.expireAfterSeconds_new = seconds;
    spec.expireAfterSeconds = seconds;
  }
  if (typeof change.hidden === "boolean") {
    reply.hidden_old = index.isHidden;
    reply.hidden_new = change.hidden;
    if (change.hidden) spec.hidden = true;
    else delete spec.hidden;
  }
  engine.catalog.changeIndex(collection, index, spec);
  return reply;
}
