import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError, notOffered } from "../command-error.ts";

export type TextDefinition = {
  /** Paths whose words are searched. */
  textPaths: string[];
  /** Paths that `equals` and `in` may ask for. */
  filterPaths: string[];
  /** The first path of type token: the tenant. Words are counted for each of its values apart. */
  partitionPath: string | undefined;
};

const filterTypes: ReadonlySet<unknown> = new Set(["token", "boolean"]);

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
  const stranger = Object.keys(definition).find((name) => name !== "mappings");
  if (stranger !== undefined) throw notOffered(`a search index with ${stranger}`);
  if (!isDocument(mappings.fields)) throw invalid('"mappings.fields" must be a document');
  const result: TextDefinition = { textPaths: [], filterPaths: [], partitionPath: undefined };
  for (const [path, mapping] of Object.entries(mappings.fields)) {
    const type: unknown = isDocument(mapping) ? mapping.type : undefined;
    if (type === "string") result.textPaths.push(path);
    else if (filterTypes.has(type)) result.filterPaths.push(path);
    else throw notOffered(`the search type ${String(type)} of "${path}"`);
    if (type === "token") result.partitionPath ??= path;
  }
  if (result.textPaths.length === 0) throw notOffered("a search index without words");
  return result;
}

function invalid(message: string) {
  return commandError("UnknownError", `Invalid definition: ${message}`);
}
