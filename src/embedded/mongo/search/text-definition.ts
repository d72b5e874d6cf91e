import { type Document, isDocument } from "../bson/bson-types.ts";
import { notOffered } from "../command-error.ts";
import { readFields } from "../fields.ts";

export type TextDefinition = {
  /** Paths whose words are searched. */
  textPaths: string[];
  /** Paths that `equals` and `in` may ask for. */
  filterPaths: string[];
  /** The first path of type token: the tenant. Words are counted for each of its values apart. */
  partitionPath: string | undefined;
};

const owner = "a search index";

/**
 * The definition of an index of type search: static mappings of strings (with English stemming, whatever analyzer is
 * named) and of values to filter by.
 * https://www.mongodb.com/docs/atlas/atlas-search/define-field-mappings/
 * @throws CommandError 238 for dynamic mappings and for types that only Atlas has.
 */
export function readTextDefinition(definition: Document): TextDefinition {
  const { mappings = {} } = readFields(owner, definition, { mappings: "document" });
  const { dynamic, fields = {} } = readFields(owner, mappings, { dynamic: "flag", fields: "document" });
  if (dynamic) throw notOffered("a search index with dynamic mappings", "NotImplemented");
  const result: TextDefinition = { textPaths: [], filterPaths: [], partitionPath: undefined };
  for (const [path, mapping] of Object.entries(fields)) {
    const type: unknown = isDocument(mapping) ? mapping.type : undefined;
    if (type === "string") result.textPaths.push(path);
    else if (type === "token" || type === "boolean") result.filterPaths.push(path);
    else throw notOffered(`the search type ${String(type)} of "${path}"`);
    if (type === "token") result.partitionPath ??= path;
  }
  if (result.textPaths.length === 0) throw notOffered("a search index without words");
  return result;
}
