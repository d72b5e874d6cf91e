import { decodeFields, withArray } from "../bson/bson-reader.ts";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { failedToParse, notOffered, typeMismatch } from "../command-error.ts";
import { readFields } from "../fields.ts";
import { type NamedStage, readStage } from "./pipeline.ts";

/** How a stage reads another collection of the same database. */
type Others = {
  /** All that a pipeline gives. */
  all(collection: string, stages: readonly NamedStage[]): IteratorObject<Uint8Array>;
  /** What a pipeline makes of the documents that match a filter. */
  matching(collection: string, stages: readonly NamedStage[]): (filter: Document) => IteratorObject<Uint8Array>;
};
type Join = (documents: IteratorObject<Uint8Array>, operand: unknown, others: Others) => IteratorObject<Uint8Array>;

/** Every stage that reads other collections. They are offered at the end of a pipeline, where all is BSON. */
export const joinStages: Readonly<Record<string, Join>> = { $lookup: lookUp, $unionWith: unionWith };

/**
 * Adds to each document the array of those in another collection that have the value of one of its fields, as MongoDB does;
 * here it is a string.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/lookup/
 */
function lookUp(documents: IteratorObject<Uint8Array>, operand: unknown, others: Others): IteratorObject<Uint8Array> {
  if (!isDocument(operand)) throw failedToParse("the $lookup specification must be an Object");
  const { from, localField, foreignField, as, pipeline = [] } = readFields("$lookup", operand, lookupShape);
  if (!from || !localField || !foreignField || !as)
    throw failedToParse("must specify from, localField, foreignField and as");
  if ([localField, foreignField, as].some((path) => path.includes("."))) throw notOffered("a path in $lookup");
  const find = others.matching(from, pipeline.map(readStage));
  const read = new Set([localField, as]);
  const known = new Map<string, readonly Uint8Array[]>();
  return documents.map((document) => {
    const { [localField]: value, [as]: before } = decodeFields(document, read);
    if (typeof value !== "string") throw notOffered(`$lookup by ${localField}, which is no string`);
    if (before !== undefined) throw notOffered(`$lookup as ${as}, which the documents have`);
    const found = known.get(value) ?? [...find({ [foreignField]: value })];
    known.set(value, found);
    return withArray(document, as, found);
  });
}

const lookupShape = { from: "text", localField: "text", foreignField: "text", as: "text", pipeline: "array" } as const;

/** The documents, and behind them those of another collection's pipeline. */
function* unionWith(documents: IteratorObject<Uint8Array>, operand: unknown, others: Others): Generator<Uint8Array> {
  if (!isDocument(operand)) throw failedToParse("the $unionWith stage specification must be an object");
  const { coll, pipeline = [] } = readFields("$unionWith", operand, unionShape);
  if (coll === undefined) throw typeMismatch("BSON field '$unionWith.coll' is missing but a required field");
  yield* documents;
  yield* others.all(coll, pipeline.map(readStage));
}

const unionShape = { coll: "text", pipeline: "array" } as const;
