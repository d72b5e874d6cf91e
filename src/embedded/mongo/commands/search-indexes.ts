import { isDeepStrictEqual } from "node:util";
import { isDocument } from "../bson-types.ts";
import type { Document } from "../codec.ts";
import type { Collection, SearchIndex } from "../collection.ts";
import { type CommandContext, type CommandFamily, findCollection, readDocument, readDocuments } from "../command.ts";
import { commandError } from "../command-error.ts";
import { readTextDefinition } from "../text-definition.ts";
import { readVectorDefinition } from "../vector-definition.ts";

export const searchIndexCommands: CommandFamily = {
  createSearchIndexes: { fields: ["indexes"], run: createSearchIndexes },
  updateSearchIndex: { fields: ["id", "name", "definition"], run: updateSearchIndex },
  dropSearchIndex: { fields: ["id", "name"], run: dropSearchIndex },
};

const defaultName = "default";

function createSearchIndexes(context: CommandContext, body: Document): Document {
  const { catalog, storage } = context.engine;
  const collection = requireCollection(context, "createSearchIndexes", body);
  const inputs = readDocuments(body, "indexes").map(readSpec);
  if (inputs.length === 0) throw commandError("BadValue", "Must specify at least one search index to create");
  const before = collection.searchIndexes;
  try {
    const indexesCreated = storage.atomically(() => {
      collection.searchIndexes = [...before];
      return inputs.map((input) => {
        const known = collection.searchIndexes.find(({ name }) => name === input.name);
        if (known !== undefined) return describeExisting(known, input);
        const index = catalog.addSearchIndex(collection, input);
        return { id: String(index.id), name: index.name };
      });
    });
    return { indexesCreated };
  } catch (error) {
    collection.searchIndexes = before;
    throw error;
  }
}

type SearchIndexInput = { name: string; type: string; definition: Document };

/** Atlas takes the same definition again, and refuses another one under a name that is taken. */
function describeExisting(known: SearchIndex, input: SearchIndexInput): { id: string; name: string } {
  if (known.type === input.type && isDeepStrictEqual(known.definition, input.definition)) {
    return { id: String(known.id), name: known.name };
  }
  throw commandError(
    "IndexAlreadyExists",
    `Index ${input.name} already exists with a different definition. Drop it first if needed.`,
  );
}

function readSpec(spec: Document): SearchIndexInput {
  const name: unknown = spec.name ?? defaultName;
  const type: unknown = spec.type ?? "search";
  if (typeof name !== "string" || name === "")
    throw commandError("BadValue", "the name of a search index must be a string");
  if (type !== "search" && type !== "vectorSearch")
    throw commandError("BadValue", `unknown type of search index: ${String(type)}`);
  if (!isDocument(spec.definition)) throw commandError("BadValue", "a search index needs a definition");
  checkDefinition(type, spec.definition);
  return { name, type, definition: spec.definition };
}

function checkDefinition(type: string, definition: Document): void {
  if (type === "vectorSearch") readVectorDefinition(definition);
  else readTextDefinition(definition);
}

function updateSearchIndex(context: CommandContext, body: Document): Document {
  const { catalog, storage } = context.engine;
  const collection = requireCollection(context, "updateSearchIndex", body);
  const index = requireIndex(collection, body);
  const definition = readDocument(body, "definition");
  checkDefinition(index.type, definition);
  const before = collection.searchIndexes;
  try {
    storage.atomically(() => {
      catalog.dropSearchIndex(collection, index);
      catalog.addSearchIndex(collection, { name: index.name, type: index.type, definition });
    });
    return {};
  } catch (error) {
    collection.searchIndexes = before;
    throw error;
  }
}

function dropSearchIndex(context: CommandContext, body: Document): Document {
  const collection = requireCollection(context, "dropSearchIndex", body);
  context.engine.catalog.dropSearchIndex(collection, requireIndex(collection, body));
  return {};
}

function requireCollection(context: CommandContext, verb: string, body: Document): Collection {
  const collection = findCollection(context, verb, body[verb]);
  if (collection !== undefined) return collection;
  throw commandError("NamespaceNotFound", `Collection '${context.db}.${String(body[verb])}' does not exist.`);
}

function requireIndex(collection: Collection, body: Document): SearchIndex {
  const index = collection.searchIndexes.find(({ id, name }) => body.name === name || body.id === String(id));
  if (index !== undefined) return index;
  throw commandError("IndexNotFound", `Search index '${String(body.name ?? body.id)}' does not exist.`);
}
