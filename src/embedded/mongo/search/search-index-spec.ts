import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import { readTextDefinition } from "./text-definition.ts";
import { readVectorDefinition } from "./vector-definition.ts";

export type SearchIndexSpec = { name: string; type: "search" | "vectorSearch"; definition: Document };

/** An index of createSearchIndexes. @throws CommandError 2, 8 as MongoDB, 238 for what is not offered. */
export function readSearchIndexSpec(spec: Document): SearchIndexSpec {
  const { name, definition } = spec;
  const type: unknown = spec.type ?? "search";
  if (typeof name !== "string" || name === "")
    throw commandError("BadValue", "the name of a search index must be a string");
  if (type !== "search" && type !== "vectorSearch")
    throw commandError("BadValue", `unknown type of search index: ${String(type)}`);
  if (!isDocument(definition)) throw commandError("BadValue", "a search index needs a definition");
  if (type === "vectorSearch") readVectorDefinition(definition);
  else readTextDefinition(definition);
  return { name, type, definition };
}
