import { Binary } from "bson";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError, notOffered } from "../command-error.ts";
import { toNumber } from "../commands/command.ts";

/** One vector a document, compared by the cosine, and the fields that a search may filter by, the tenant first. */
export type VectorDefinition = { path: string; dimensions: number; filterPaths: string[] };

const maxDimensions = 8192;

/**
 * The definition of an index of type vectorSearch.
 * https://www.mongodb.com/docs/atlas/atlas-vector-search/vector-search-type/
 * @throws CommandError as Atlas when it is malformed, 238 for more than one vector and for nested fields.
 */
export function readVectorDefinition(definition: Document): VectorDefinition {
  const { fields } = definition;
  if (!Array.isArray(fields) || fields.length === 0) throw invalid('"fields" is required and cannot be empty');
  const filterPaths: string[] = [];
  let vector: Omit<VectorDefinition, "filterPaths"> | undefined;
  for (const field of fields) {
    if (!isDocument(field) || typeof field.path !== "string" || field.path === "") {
      throw invalid('each of "fields" must be a document with a "path"');
    }
    const { path, type } = field;
    if (path === vector?.path || filterPaths.includes(path)) throw invalid(`path "${path}" is given twice`);
    if (path.includes(".")) throw notOffered("a vector index of nested fields");
    if (type === "vector" && vector !== undefined) throw notOffered("a vector index of several vectors");
    if (type === "filter") filterPaths.push(path);
    else if (type === "vector") vector = { path, dimensions: readDimensions(field) };
    else throw notOffered(`a field of type ${String(type)} in a vector index`);
  }
  if (vector === undefined) throw invalid('"fields" must hold at least one of type "vector"');
  return { ...vector, filterPaths };
}

function readDimensions(field: Document): number {
  const dimensions = toNumber(field.numDimensions);
  if (dimensions === undefined || !Number.isInteger(dimensions) || dimensions < 1 || dimensions > maxDimensions) {
    throw invalid(`"fields.numDimensions" must be between 1 and ${maxDimensions}`);
  }
  if (field.similarity !== "cosine") throw notOffered(`the similarity ${String(field.similarity)}`);
  return dimensions;
}

function invalid(message: string) {
  return commandError("UnknownError", `Invalid definition: ${message}`);
}

/** BSON's mark of a vector of 32-bit floats. https://github.com/mongodb/specifications/blob/master/source/bson-binary-vector */
const float32Type = 0x27;

/** A vector as documents and queries hold it: BSON's binary float32 vector, or an array of numbers. */
export function readVector(value: unknown): Float32Array | undefined {
  if (value instanceof Binary) return readBinary(value);
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const vector = new Float32Array(value.length);
  for (const [at, item] of value.entries()) {
    const number = typeof item === "number" ? item : toNumber(item);
    if (number === undefined || !Number.isFinite(number)) return undefined;
    vector[at] = number;
  }
  return vector;
}

function readBinary(value: Binary): Float32Array | undefined {
  if (value.sub_type !== Binary.SUBTYPE_VECTOR || value.buffer[0] !== float32Type) return undefined;
  try {
    return value.toFloat32Array();
  } catch {
    return undefined; // its length is no whole number of floats
  }
}
