import { Binary } from "bson";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError, notOffered } from "../command-error.ts";
import { readFields } from "../fields.ts";

export type TextDefinition = {
  /** Paths whose words are searched. */
  textPaths: string[];
  /** Paths that `equals` and `in` may ask for. */
  filterPaths: string[];
  /** The first path of type token: the tenant. Words are counted for each of its values apart. */
  partitionPath: string | undefined;
};

/**
 * The definition of an index of type search: static mappings of strings (with English stemming, whatever analyzer is
 * named) and of values to filter by.
 * https://www.mongodb.com/docs/atlas/atlas-search/define-field-mappings/
 * @throws CommandError 238 for dynamic mappings and for types that only Atlas has.
 */
export function readTextDefinition(definition: Document): TextDefinition {
  const { mappings = {} } = readFields("a search index", definition, { mappings: "document" });
  const { dynamic, fields = {} } = readFields("a search index", mappings, { dynamic: "flag", fields: "document" });
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

/** One vector a document, compared by the cosine, and the fields that a search may filter by, the tenant first. */
export type VectorDefinition = { path: string; dimensions: number; filterPaths: string[] };

const MAX_DIMENSIONS = 8192;
const fieldShape = { type: "text", path: "text", numDimensions: "count", similarity: "text" } as const;

/**
 * The definition of an index of type vectorSearch.
 * https://www.mongodb.com/docs/atlas/atlas-vector-search/vector-search-type/
 * @throws CommandError as Atlas when it is malformed, 238 for more than one vector and for nested fields.
 */
export function readVectorDefinition(definition: Document): VectorDefinition {
  const { fields = [] } = readFields("a vector index", definition, { fields: "documents" });
  const filterPaths: string[] = [];
  let vector: Omit<VectorDefinition, "filterPaths"> | undefined;
  for (const field of fields) {
    const { type, path = "", numDimensions = 0, similarity } = readFields("a vector index", field, fieldShape);
    if (path === "" || path === vector?.path || filterPaths.includes(path))
      throw invalid(`each of "fields" needs a "path" of its own`);
    if (path.includes(".")) throw notOffered("a vector index of nested fields");
    if (type === "filter") filterPaths.push(path);
    else if (type !== "vector") throw notOffered(`a field of type ${type} in a vector index`);
    else if (vector !== undefined) throw notOffered("a vector index of several vectors");
    else if (similarity !== "cosine") throw notOffered(`the similarity ${similarity}`);
    else if (numDimensions < 1 || numDimensions > MAX_DIMENSIONS)
      throw invalid(`"fields.numDimensions" must be between 1 and ${MAX_DIMENSIONS}`);
    else vector = { path, dimensions: numDimensions };
  }
  if (vector === undefined) throw invalid('"fields" must hold at least one of type "vector"');
  return { ...vector, filterPaths };
}

function invalid(message: string) {
  return commandError("UnknownError", `Invalid definition: ${message}`);
}

/** BSON's mark of a vector of 32-bit floats. https://github.com/mongodb/specifications/blob/master/source/bson-binary-vector */
const float32Type = 0x27;

/** A vector as documents and queries hold it: BSON's binary float32 vector, or an array of numbers. */
export function readVector(value: unknown): Float32Array | undefined {
  if (Array.isArray(value) && value.length > 0)
    return value.every(Number.isFinite) ? new Float32Array(value) : undefined;
  const isVector =
    value instanceof Binary && value.sub_type === Binary.SUBTYPE_VECTOR && value.buffer[0] === float32Type;
  try {
    return isVector ? value.toFloat32Array() : undefined;
  } catch {
    return undefined; // its length is no whole number of floats
  }
}
