import { isDeepStrictEqual } from "node:util";
import type { Document } from "../bson/bson-types.ts";
import { hasPlace } from "../bson/path-values.ts";
import { commandError, failedToParse, notOffered } from "../command-error.ts";
import { type Fields, readFields } from "../fields.ts";
import { checkPartialFilter } from "../query/predicates.ts";
import { readTextDefinition, readVectorDefinition } from "../search/definitions.ts";
import { createIndex, createSearchIndex, redefineSearchIndex } from "../storage/catalog.ts";
import { allRows, type Collection, type SearchIndex, type SearchIndexSpec } from "../storage/collection.ts";
import { fileDocument } from "../storage/documents.ts";
import { type CommandContext, type CommandFamily, collectionName, defineCommand, findCollection } from "./command.ts";

/** Most paths of one index: each has a bit of `multikey`. MongoDB allows 32. */
const maxIndexPaths = 31;

const indexesShape = { indexes: "documents" } as const;
const updateShape = { name: "text", definition: "document" } as const;

/** Indexes of both kinds are declared, and live as long as their collection; a database is dropped as a whole. */
export const indexCommands: CommandFamily = {
  createIndexes: defineCommand("createIndexes", indexesShape, createIndexes),
  createSearchIndexes: defineCommand("createSearchIndexes", indexesShape, createSearchIndexes),
  updateSearchIndex: defineCommand("updateSearchIndex", updateShape, updateSearchIndex),
  dropDatabase: defineCommand("dropDatabase", {}, dropDatabase),
};

function createIndexes(context: CommandContext, fields: Fields<typeof indexesShape>): Document {
  const { catalog, storage } = context.engine;
  const specs = needIndexes(fields).map(readIndexSpec);
  const collection = catalog.ensure(context.db, collectionName(context));
  const numIndexesBefore = collection.indexes.length + 1; // that of _id
  const missing = specs.filter((spec, at) => isMissing(collection, spec, specs.slice(0, at)));
  const added = storage.atomically(() => {
    const indexes = missing.map((spec) => createIndex(storage, collection, spec));
    if (indexes.length === 0) return indexes;
    for (const row of allRows(collection)) for (const index of indexes) fileDocument(collection, index, row);
    return indexes;
  });
  collection.indexes.push(...added);
  return { numIndexesBefore, numIndexesAfter: numIndexesBefore + added.length };
}

function needIndexes({ indexes = [] }: Fields<typeof indexesShape>): Document[] {
  if (indexes.length === 0) throw commandError("BadValue", "Must specify at least one index to create");
  return indexes;
}

const indexShape = {
  key: "document",
  name: "text",
  unique: "flag",
  sparse: "flag",
  expireAfterSeconds: "count",
  partialFilterExpression: "document",
} as const;

/** An index as it is kept: defaults left out. @throws CommandError 67, 197, 14, 9; 238 for what only MongoDB has. */
function readIndexSpec(input: Document): Document {
  const given = readFields("an index", input, indexShape, "InvalidIndexSpecificationOption");
  const { key, name, unique, sparse, expireAfterSeconds, partialFilterExpression } = given;
  if (key === undefined || !name) throw failedToParse("An index specification requires the fields 'key' and 'name'");
  for (const [path, direction] of Object.entries(key)) checkPath(path, direction);
  const paths = Object.keys(key);
  if (paths.length === 0 || paths.length > maxIndexPaths)
    throw cannotCreate(`An index has between 1 and ${maxIndexPaths} keys`);
  const roots = new Set(paths.map((path) => path.split(".", 1)[0]));
  if (roots.size < paths.length) throw notOffered("an index of two paths below one field");
  if (expireAfterSeconds !== undefined && (paths.length > 1 || paths[0] === "_id"))
    throw cannotCreate("TTL indexes are single-field indexes, compound indexes do not support TTL");
  if (sparse && partialFilterExpression !== undefined)
    throw cannotCreate('cannot mix "partialFilterExpression" and "sparse" options');
  checkPartialFilter(partialFilterExpression ?? {});
  return {
    v: 2,
    key,
    name,
    ...(unique ? { unique } : {}),
    ...(sparse ? { sparse } : {}),
    ...(expireAfterSeconds === undefined ? {} : { expireAfterSeconds }),
    ...(partialFilterExpression === undefined ? {} : { partialFilterExpression }),
  };
}

function checkPath(path: string, direction: unknown): void {
  if (typeof direction === "string") throw notOffered(`an index of type ${direction}`);
  if (direction !== 1 && direction !== -1) throw cannotCreate("Values in the index key pattern must be 1 or -1");
  if (path === "$**") throw notOffered("a wildcard index");
  if (hasPlace(path)) throw notOffered("an index of a place in an array");
  if (path.split(".").some((part) => part === "" || part.startsWith("$")))
    throw cannotCreate("Index keys cannot contain an empty field, or one that starts with '$'.");
}

const cannotCreate = (message: string) => commandError("CannotCreateIndex", message);

/** Options that make two indexes over the same key different ones. */
const identity = (spec: Document) => [
  Object.entries(spec.key),
  spec.unique === true,
  spec.sparse === true,
  spec.partialFilterExpression,
];

/** Whether the index is still to be made. @throws CommandError 85 or 86 when it is at odds with one that exists. */
function isMissing(collection: Collection, spec: Document, others: readonly Document[]): boolean {
  const known = [collection.idIndex, ...collection.indexes].map((index) => index.spec).concat(others);
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
  const { storage } = context.engine;
  const collection = findCollection(context);
  if (collection === undefined) {
    throw commandError("NamespaceNotFound", `Collection '${context.db}.${context.target}' does not exist.`);
  }
  const specs = needIndexes(fields).map(readSearchIndexSpec);
  const added: SearchIndex[] = [];
  const indexes = storage.atomically(() =>
    specs.map((spec) => {
      const known = [...collection.searchIndexes, ...added].find(({ name }) => name === spec.name);
      if (known !== undefined) return checkSame(known, spec);
      const index = createSearchIndex(storage, collection, spec);
      added.push(index);
      return index;
    }),
  );
  collection.searchIndexes.push(...added);
  return { indexesCreated: indexes.map(({ id, name }) => ({ id: String(id), name })) };
}

/** Gives an index other paths. Words are filed anew if it has other texts; its vector stays as it is filed. */
function updateSearchIndex(context: CommandContext, { name, definition }: Fields<typeof updateShape>): Document {
  const { storage } = context.engine;
  const collection = findCollection(context);
  const at = collection?.searchIndexes.findIndex((index) => index.name === name) ?? -1;
  const known = collection?.searchIndexes[at];
  if (!collection || !known) throw commandError("IndexNotFound", `there is no search index ${name}`);
  const spec = { ...readSearchIndexSpec({ name, definition, type: known.type }), id: known.id };
  const { text } = known;
  const isOther = text && !isDeepStrictEqual(readTextDefinition(spec.definition).textPaths, text.definition.textPaths);
  collection.searchIndexes[at] = storage.atomically(() => {
    if (isOther) text.drop(); // it is filled again as a new one is
    return redefineSearchIndex(storage, collection, spec);
  });
  return {};
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
function checkSame(known: SearchIndex, spec: SearchIndexSpec): SearchIndex {
  if (known.type === spec.type && isDeepStrictEqual(known.definition, spec.definition)) return known;
  const message = `Index ${spec.name} already exists with a different definition. Drop it first if needed.`;
  throw commandError("IndexAlreadyExists", message);
}

function dropDatabase(context: CommandContext): Document {
  const { catalog } = context.engine;
  const collections = catalog.list().filter(({ db }) => db === context.db);
  for (const collection of collections) catalog.drop(collection);
  return collections.length === 0 ? {} : { dropped: context.db };
}
