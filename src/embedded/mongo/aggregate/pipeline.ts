import { type Document, isDocument, setField } from "../bson/bson-types.ts";
import { readSort, type Sort, sortKey } from "../bson/order.ts";
import { commandError, located, notOffered, showValue, typeMismatch } from "../command-error.ts";
import { compileFilter } from "../query/filter.ts";
import { compileProjectStage } from "../query/projection.ts";
import { searchStages } from "../search/search-stages.ts";
import { compileExpression } from "./expressions.ts";
import { compileGroup } from "./group.ts";

/** A compiled stage: lazy where it can be, so that `$limit` ends the work of those before it. */
export type Stage = (documents: Iterable<Document>) => Iterable<Document>;

/** Every stage that this server has beside those that search: what is not here is refused. */
export const stages: Readonly<Record<string, (operand: unknown) => Stage>> = {
  $match: match,
  $project: (operand) => mapping(compileProjectStage(operand)),
  $group: compileGroup,
  $sort: sort,
  $limit: limit,
};

/** The stages of a pipeline that is an update. */
export const updateStages: Readonly<Record<string, (operand: unknown) => Stage>> = { $set: set };

/**
 * Compiles the stages of an aggregation, which do not change their documents but make new ones.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/
 * @throws CommandError as MongoDB: 40324 for stages that are not offered; others for malformed operands.
 */
export function compilePipeline(given: readonly (readonly [name: string, operand: unknown])[]): Stage {
  const compiled = given.map(([name, operand]) => {
    if (Object.hasOwn(searchStages, name))
      throw commandError("Location40602", `${name} is only valid as the first stage in a pipeline`);
    const compile = Object.hasOwn(stages, name) ? stages[name] : undefined;
    if (compile === undefined) throw notOffered(name, "Location40324");
    return compile(operand);
  });
  return (documents) => compiled.reduce((input, stage) => stage(input), documents);
}

/** Runs a pipeline that is an update, over one document. */
export function runUpdatePipeline(given: readonly Document[], document: Document): Document {
  const compiled = given.map((stage) => {
    const [name, operand] = readStage(stage);
    if (Object.hasOwn(stages, name))
      throw commandError("InvalidOptions", `${name} is not allowed to be used within an update`);
    const compile = Object.hasOwn(updateStages, name) ? updateStages[name] : undefined;
    if (compile === undefined) throw notOffered(`${name} in an update`, "Location40324");
    return compile(operand);
  });
  const [result = document] = compiled.reduce<Iterable<Document>>((input, stage) => stage(input), [document]);
  return result;
}

/** The name of a stage and its operand. */
export function readStage(stage: unknown): [name: string, operand: unknown] {
  if (!isDocument(stage)) throw typeMismatch("Each element of the 'pipeline' array must be an object");
  const [entry, ...others] = Object.entries(stage);
  if (entry === undefined || others.length > 0) {
    throw located(40323, "A pipeline stage specification object must contain exactly one field.");
  }
  return entry;
}

function mapping(change: (document: Document) => Document): Stage {
  return (documents) => Iterator.from(documents).map(change);
}

function match(operand: unknown): Stage {
  if (!isDocument(operand)) throw located(15959, "the match filter must be an expression in an object");
  const matches = compileFilter(operand);
  return (documents) => Iterator.from(documents).filter(matches);
}

/** Sets fields to the values of expressions, all of which see the document as it was. */
function set(operand: unknown): Stage {
  if (!isDocument(operand)) throw located(40272, "$set specification stage must be an object");
  const now = new Date();
  const fields = Object.keys(operand).map((name) => {
    const value: unknown = operand[name];
    // There a document names the nested fields to be set, and leaves the others.
    const isNested = isDocument(value) && Object.keys(value)[0]?.startsWith("$") !== true;
    if (name.includes(".") || isNested) throw notOffered("nested fields in a pipeline's $set");
    if (name.startsWith("$")) throw located(16410, "FieldPath field names may not start with '$'.");
    return [name, compileExpression(value)] as const;
  });
  return mapping((root) => {
    const result: Document = { ...root };
    for (const [name, expression] of fields) {
      const value = expression({ root, now });
      if (value === undefined) delete result[name];
      else setField(result, name, value);
    }
    return result;
  });
}

/** The operand of `$sort`. */
export function readSortStage(operand: unknown): Sort {
  if (!isDocument(operand)) throw located(15973, "the $sort key specification must be an object");
  if (Object.keys(operand).length === 0) throw located(15976, "$sort stage must have at least one sort key");
  return readSort(operand) ?? {};
}

function sort(operand: unknown): Stage {
  const order = readSortStage(operand);
  return (documents) =>
    Array.from(documents, (document) => ({ document, key: sortKey(document, order) }))
      .sort((a, b) => Buffer.compare(a.key, b.key))
      .map(({ document }) => document);
}

function limit(operand: unknown): Stage {
  if (operand === 0) throw located(15958, "the limit must be positive");
  if (typeof operand !== "number" || !Number.isInteger(operand) || operand < 0)
    throw located(5107201, `invalid argument to $limit stage: ${showValue(operand)} is no positive integer`);
  return (documents) => Iterator.from(documents).take(operand);
}
