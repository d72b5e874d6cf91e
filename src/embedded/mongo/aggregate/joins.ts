import { type Document, isDocument } from "../bson/bson-types.ts";
import { decodeFields, withField } from "../bson/stored-fields.ts";
import { failedToParse, notOffered, typeMismatch } from "../command-error.ts";
import { readFields } from "../fields.ts";
import { limit, type NamedStage, readStage } from "./pipeline.ts";

type Documents = IteratorObject<Uint8Array>;
/** How a stage reads another collection of the same database. */
type Others = {
  /** All that a pipeline gives. */
  all(collection: string, stages: readonly NamedStage[]): Documents;
  /** What a pipeline makes of the documents that match a filter. */
  matching(collection: string, stages: readonly NamedStage[]): (filter: Document) => Documents;
};
/** What a stage makes of documents. A stage that unwinds what it has added is run together with it. */
type Join = (documents: Documents, operand: unknown, others: Others, unwind?: NamedStage) => Documents;

/** Every stage that reads other collections. */
export const joinStages: Readonly<Record<string, Join>> = { $lookup: lookUp, $unionWith: unionWith };
/** Those that may stand behind one of these, where all is BSON. A search before a `$limit` reads what that leaves, at once. */
const lateStages: Readonly<Record<string, Join>> = {
  ...joinStages,
  $limit: (documents, operand) => [...limit(operand)(documents)].values(),
};

/** Runs the stages of a pipeline from its first join on. @throws CommandError as the stages' own, and for all others. */
export function runJoins(documents: Documents, stages: readonly NamedStage[], others: Others): Documents {
  const [[name = "", operand] = [], second, ...rest] = stages;
  if (stages.length === 0) return documents;
  const run = Object.hasOwn(lateStages, name) ? lateStages[name] : undefined;
  if (run === undefined) throw notOffered(`${name} behind $lookup or $unionWith`, 40324);
  if (name === "$lookup" && second?.[0] === "$unwind")
    return runJoins(run(documents, operand, others, second), rest, others);
  return runJoins(run(documents, operand, others), stages.slice(1), others);
}

/**
 * Adds to each document the array of those in another collection that have the value of one of its fields, as MongoDB does;
 * here it is a string. Unwound, each of these is added alone, to the document once more.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/lookup/
 */
function lookUp(documents: Documents, operand: unknown, others: Others, unwind?: NamedStage): Documents {
  if (!isDocument(operand)) throw failedToParse("the $lookup specification must be an Object");
  const { from, localField, foreignField, as, pipeline = [] } = readFields("$lookup", operand, lookupShape);
  if (!from || !localField || !foreignField || !as)
    throw failedToParse("must specify from, localField, foreignField and as");
  if ([localField, foreignField, as].some((path) => path.includes("."))) throw notOffered("a path in $lookup");
  const add = unwind
    ? unwound(as, unwind)
    : (document: Uint8Array, found: readonly Uint8Array[]) => [withField(document, as, found)];
  const find = others.matching(from, pipeline.map(readStage));
  const read = new Set([localField, as]);
  const known = new Map<string, readonly Uint8Array[]>();
  return documents.flatMap((document) => {
    const { [localField]: value, [as]: before } = decodeFields(document, read);
    if (typeof value !== "string") throw notOffered(`$lookup by ${localField}, which is no string`);
    if (before !== undefined) throw notOffered(`$lookup as ${as}, which the documents have`);
    const found = known.get(value) ?? [...find({ [foreignField]: value })];
    known.set(value, found);
    return add(document, found);
  });
}

const lookupShape = { from: "text", localField: "text", foreignField: "text", as: "text", pipeline: "array" } as const;

/**
 * How an array is unwound that is added under this name.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/unwind/
 */
function unwound(as: string, [, operand]: NamedStage) {
  const given = isDocument(operand) ? operand : { path: operand };
  const { path, preserveNullAndEmptyArrays: isKept = false } = readFields("$unwind", given, unwindShape);
  if (path !== `$${as}`) throw notOffered("$unwind of what the $lookup before it has not added");
  return (document: Uint8Array, found: readonly Uint8Array[]) =>
    found.length === 0 && isKept ? [document] : found.map((one) => withField(document, as, one));
}

const unwindShape = { path: "text", preserveNullAndEmptyArrays: "flag" } as const;

/** The documents, and behind them those of another collection's pipeline. */
function* unionWith(documents: Documents, operand: unknown, others: Others): Generator<Uint8Array> {
  if (!isDocument(operand)) throw failedToParse("the $unionWith stage specification must be an object");
  const { coll, pipeline = [] } = readFields("$unionWith", operand, unionShape);
  if (coll === undefined) throw typeMismatch("BSON field '$unionWith.coll' is missing but a required field");
  yield* documents;
  yield* others.all(coll, pipeline.map(readStage));
}

const unionShape = { coll: "text", pipeline: "array" } as const;
