import { isDocument } from "./bson-types.ts";
import type { Document } from "./codec.ts";
import { commandError, notOffered } from "./command-error.ts";

export type TextDefinition = {
  /** Paths whose words are searched. */
  textPaths: string[];
  /** Paths that `equals`, `in`, `range` and `exists` may ask for. */
  filterPaths: string[];
  /** The first path of type token: the tenant. Words are counted for each of its values apart. */
  partitionPath: string | undefined;
};

const filterTypes: ReadonlySet<string> = new Set(["token", "boolean", "number", "date", "objectId", "uuid"]);

/**
 * The definition of an index of type search: static mappings of strings (with English stemming, whatever analyzer is
 * named) and of values to filter by.
 * https://www.mongodb.com/docs/atlas/atlas-search/define-field-mappings/
 * @throws CommandError 238 for dynamic mappings and for types that only Atlas has, 8 when it is malformed.
 */
export function readTextDefinition(definition: Document): TextDefinition {
  const { mappings } = definition;
  if (!isDocument(mappings)) throw invalid('"mappings" is required');
  if (mappings.dynamic !== undefined && mappings.dynamic !== false) {
    throw notOffered("a search index with dynamic mappings");
  }
  if (definition.synonyms !== undefined) throw notOffered("a search index with synonyms");
  const result: TextDefinition = { textPaths: [], filterPaths: [], partitionPath: undefined };
  readFields(mappings.fields, "", result);
  if (result.textPaths.length === 0 && result.filterPaths.length === 0)
    throw invalid('"mappings.fields" names no field');
  return result;
}

function readFields(fields: unknown, prefix: string, result: TextDefinition): void {
  if (!isDocument(fields)) throw invalid('"fields" must be a document');
  for (const [name, value] of Object.entries(fields)) {
    const mappings: unknown[] = Array.isArray(value) ? value : [value];
    for (const mapping of mappings) {
      if (!isDocument(mapping)) throw invalid(`the mapping of "${prefix}${name}" must be a document`);
      readMapping(`${prefix}${name}`, mapping, result);
    }
  }
}

function readMapping(path: string, mapping: Document, result: TextDefinition): void {
  const { type } = mapping;
  if (type === "string") {
    result.textPaths.push(path);
  } else if (type === "document") {
    readFields(mapping.fields, `${path}.`, result);
  } else if (typeof type === "string" && filterTypes.has(type)) {
    result.filterPaths.push(path);
    if (type === "token") result.partitionPath ??= path;
  } else {
    throw notOffered(`the search type ${String(type)} of "${path}"`);
  }
}

function invalid(message: string) {
  return commandError("UnknownError", `Invalid definition: ${message}`);
}
