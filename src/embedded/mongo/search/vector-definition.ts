import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError, notOffered } from "../command-error.ts";
import { toNumber } from "../commands/command.ts";

/** Vectors are compared by the cosine. */
export type VectorField = { path: string; dimensions: number };
export type VectorDefinition = { vectors: VectorField[]; filterPaths: string[] };

const maxDimensions = 8192;

/**
 * The definition of an index of type vectorSearch.
 * https://www.mongodb.com/docs/atlas/atlas-vector-search/vector-search-type/
 * @throws CommandError as Atlas when it is malformed.
 */
export function readVectorDefinition(definition: Document): VectorDefinition {
  const { fields } = definition;
  if (!Array.isArray(fields) || fields.length === 0) throw invalid('"fields" is required and cannot be empty');
  const result: VectorDefinition = { vectors: [], filterPaths: [] };
  const paths = new Set<string>();
  for (const field of fields) {
    if (!isDocument(field) || typeof field.path !== "string" || field.path === "") {
      throw invalid('each of "fields" must be a document with a "path"');
    }
    if (paths.has(field.path)) throw invalid(`path "${field.path}" is given twice`);
    paths.add(field.path);
    if (field.type === "filter") result.filterPaths.push(field.path);
    else if (field.type === "vector") result.vectors.push(readVectorField(field, field.path));
    else throw notOffered(`a field of type ${String(field.type)} in a vector index`);
  }
  if (result.vectors.length === 0) throw invalid('"fields" must hold at least one of type "vector"');
  return result;
}

function readVectorField(field: Document, path: string): VectorField {
  const dimensions = toNumber(field.numDimensions);
  if (dimensions === undefined || !Number.isInteger(dimensions) || dimensions < 1 || dimensions > maxDimensions) {
    throw invalid(`"fields.numDimensions" must be between 1 and ${maxDimensions}`);
  }
  if (field.similarity !== "cosine") throw notOffered(`the similarity ${String(field.similarity)}`);
  return { path, dimensions };
}

function invalid(message: string) {
  return commandError("UnknownError", `Invalid definition: ${message}`);
}
