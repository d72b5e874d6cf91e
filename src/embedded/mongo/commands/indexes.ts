import { isDeepStrictEqual } from "node:util";
import type { Document } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import { type Fields, readFields } from "../fields.ts";
import { makeRow } from "../query/scan.ts";
import { readTextDefinition, readVectorDefinition } from "../search/definitions.ts";
import { allRows, type Collection, type Index, type SearchIndexSpec } from "../storage/collection.ts";
import { fileDocument } from "../storage/documents.ts";
import { readIndexSpec } from "../storage/index-spec.ts";
import { type CommandContext, type CommandFamily, collectionName, defineCommand, findCollection } from "./command.ts";

const indexesShape = { indexes: "documents" } as const;

/** Indexes of both kinds are declared, and live as long as their collection; a database is dropped as a whole. */
export const indexCommands: CommandFamily = {
  createIndexes: defineCommand("createIndexes", indexesShape, createIndexes),
  createSearchIndexes: defineCommand("createSearchIndexes", indexesShape, createSearchIndexes),
  dropDatabase: defineCommand("dropDatabase", {}, dropDatabase),
};

function createIndexes(context: CommandContext, fields: Fields<typeof indexesShape>): Document {
  const { catalog, storage } = context.engine;
  const specs = needIndexes(fields).map(readIndexSpec);
  const collection = catalog.ensure(context.db, collectionName(context));
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
  return { numIndexesBefore: before.length, numIndexesAfter: collection.indexes.length };
}

function needIndexes({ indexes = [] }: Fields<typeof indexesShape>): Document[] {
  if (indexes.length === 0) throw commandError("BadValue", "Must specify at least one index to create");
  return indexes;
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
    if (isDeepStrictEqual(sameName, spec) || spec.name === "_id_") return false;
    const shown = `Requested index: ${JSON.stringify(spec)}, existing index: ${JSON.stringify(sameName)}`;
    throw commandError("IndexKeySpecsConflict", `An existing index has the same name and is another. ${shown}`);
  }
  const sameKey = known.find((other) => isDeepStrictEqual(identity(other), identity(spec)));
  if (sameKey === undefined) return true;
  throw commandError("IndexOptionsConflict", `Index already exists with a different name: ${String(sameKey.name)}`);
}

function createSearchIndexes(context: CommandContext, fields: Fields<typeof indexesShape>): Document {
  const { catalog, storage } = context.engine;
  const collection = findCollection(context);
  if (collection === undefined) {
    throw commandError("NamespaceNotFound", `Collection '${context.db}.${context.target}' does not exist.`);
  }
  const specs = needIndexes(fields).map(readSearchIndexSpec);
  const before = collection.searchIndexes;
  try {
    const indexesCreated = storage.atomically(() => {
      collection.searchIndexes = [...before];
      return specs.map((spec) => {
        const known = collection.searchIndexes.find(({ name }) => name === spec.name);
        if (known !== undefined) checkSame(known, spec);
        const { id, name } = known ?? catalog.addSearchIndex(collection, spec);
        return { id: String(id), name };
      });
    });
    return { indexesCreated };
  } catch (error) {
    collection.searchIndexes = before;
    throw error;
  }
}

const searchIndexShape = { name: "text", type: "text", definition: "document" } as const;

/** An index of createSearchIndexes. @throws CommandError 2, 8 as MongoDB, 238 for what is not offered. */
function readSearchIndexSpec(given: Document): SearchIndexSpec {
  const { name, type = "search", definition } = readFields("a search index", given, searchIndexShape);
  if (!name || definition === undefined) throw commandError("BadValue", "a search index needs name and definition");
  if (type === "vectorSearch") readVectorDefinition(definition);
  else if (type === "search") readTextDefinition(definition);
  else throw commandError("BadValue", `unknown type of search index: ${type}`);
  return { name, type, definition };
}

/** Atlas accepts the same definition again, and refuses another one under a name that is taken. */
function checkSame(known: SearchIndexSpec, spec: SearchIndexSpec): void {
  if (known.type === spec.type && isDeepStrictEqual(known.definition, spec.definition)) return;
  const message = `Index ${spec.name} already exists with a different definition. Drop it first if needed.`;
  throw commandError("IndexAlreadyExists", message);
}

function dropDatabase(context: CommandContext): Document {
  const { catalog } = context.engine;
  const collections = catalog.list(context.db);
  for (const collection of collections) catalog.drop(collection);
  return collections.length === 0 ? {} : { dropped: context.db };
}
