import { type Document, getField, isDocument, setField } from "../bson/bson-types.ts";
import { keyOf } from "../bson/index-keys.ts";
import { readSort, sortKey } from "../bson/order.ts";
import { located, notOffered, showValue, typeMismatch } from "../command-error.ts";
import { compileFilter } from "../query/filter.ts";
import { compileProjection } from "../query/projection.ts";
import { searchStages } from "../search/search-stages.ts";

/** A compiled stage: lazy where it can be, so that `$limit` ends the work of those before it. */
export type Stage = (documents: Iterable<Document>) => Iterable<Document>;

/** Every stage that this server has beside those that search: what is not here is refused. */
export const stages: Readonly<Record<string, (operand: unknown) => Stage>> = {
  $match: match,
  $project: project,
  $group: group,
  $sort: sort,
  $limit: limit,
};

/** A stage's name, and its operand. */
export type NamedStage = readonly [name: string, operand: unknown];

/** What a value adds to the total of its group, which is 0 at first. */
type Accumulator = (total: number, value: unknown) => number;

/** Every accumulator that this server has: what is not here is refused. */
export const accumulators: Readonly<Record<string, Accumulator>> = {
  $sum: (total, value) => (typeof value === "number" ? total + value : total),
};

/**
 * Compiles the stages of an aggregation, which do not change their documents but make new ones.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/
 * @throws CommandError as MongoDB: 40324 for stages that are not offered; others for malformed operands.
 */
export function compilePipeline(given: readonly NamedStage[]): Stage {
  const compiled = given.map(([name, operand]) => {
    if (Object.hasOwn(searchStages, name))
      throw located(40602, `${name} is only valid as the first stage in a pipeline`);
    const compile = Object.hasOwn(stages, name) ? stages[name] : undefined;
    if (compile === undefined) throw notOffered(name, 40324);
    return compile(operand);
  });
  return (documents) => compiled.reduce((input, stage) => stage(input), documents);
}

/** A stage as it is given. @throws CommandError 40323 for one that has no name, or several. */
export function readStage(stage: unknown): NamedStage {
  if (!isDocument(stage)) throw typeMismatch("Each element of the 'pipeline' array must be an object");
  const [entry, ...others] = Object.entries(stage);
  if (entry === undefined || others.length > 0) {
    throw located(40323, "A pipeline stage specification object must contain exactly one field.");
  }
  return entry;
}

function match(operand: unknown): Stage {
  if (!isDocument(operand)) throw located(15959, "the match filter must be an expression in an object");
  const matches = compileFilter(operand);
  return (documents) => Iterator.from(documents).filter(matches);
}

function project(operand: unknown): Stage {
  if (!isDocument(operand)) throw located(15969, "$project specification must be an object");
  if (Object.keys(operand).length === 0)
    throw located(51272, "Invalid $project :: caused by :: projection specification must have at least one field");
  const { ofDocument } = compileProjection(operand);
  return (documents) => Iterator.from(documents).map(ofDocument);
}

function sort(operand: unknown): Stage {
  if (!isDocument(operand)) throw located(15973, "the $sort key specification must be an object");
  const order = readSort(operand);
  if (order === undefined) throw located(15976, "$sort stage must have at least one sort key");
  return (documents) =>
    Array.from(documents, (document) => ({ document, key: sortKey(document, order) }))
      .sort((a, b) => Buffer.compare(a.key, b.key))
      .map(({ document }) => document);
}

export function limit(operand: unknown) {
  if (operand === 0) throw located(15958, "the limit must be positive");
  if (typeof operand !== "number" || !Number.isInteger(operand) || operand < 0)
    throw located(5107201, `invalid argument to $limit stage: ${showValue(operand)} is no positive integer`);
  return <T>(documents: Iterable<T>) => Iterator.from(documents).take(operand);
}

type Group = { key: unknown; totals: number[] };

/** One document for each value of `_id`, in the order in which the values came: 1 and 1.0 are one value, as everywhere. */
function group(operand: unknown): Stage {
  if (!isDocument(operand)) throw located(15947, "a group's fields must be specified in an object");
  if (!("_id" in operand)) throw located(15955, "a group specification must include an _id");
  const { _id: id, ...specifications } = operand;
  const idOf = compileExpression(id);
  const fields = Object.entries(specifications).map(([name, value]) => compileGroupField(name, value));
  return function* (documents) {
    const groups = new Map<string, Group>();
    for (const document of documents) {
      const key = idOf(document) ?? null;
      const identity = keyOf(key);
      const { totals } = groups.get(identity) ?? { totals: fields.map(() => 0) };
      groups.set(identity, { key, totals: fields.map(({ add }, at) => add(totals[at] ?? 0, document)) });
    }
    for (const { key, totals } of groups.values()) {
      const result: Document = { _id: key };
      for (const [at, { name }] of fields.entries()) setField(result, name, totals[at]);
      yield result;
    }
  };
}

function compileGroupField(name: string, specification: unknown) {
  if (name.includes(".")) throw located(40235, `The field name '${name}' cannot contain '.'`);
  if (name.startsWith("$")) throw located(40236, `The field name '${name}' cannot be an operator name`);
  const [[operator, operand] = ["", undefined], ...others] = isDocument(specification)
    ? Object.entries(specification)
    : [];
  if (!operator.startsWith("$")) throw located(40234, `The field '${name}' must be an accumulator object`);
  if (others.length > 0) throw located(40238, `The field '${name}' must specify one accumulator`);
  const accumulator = Object.hasOwn(accumulators, operator) ? accumulators[operator] : undefined;
  if (accumulator === undefined) throw notOffered(operator, 15952);
  const read = compileExpression(operand);
  return { name, add: (total: number, document: Document) => accumulator(total, read(document)) };
}

/**
 * A field's name behind `$`, a constant, or a document of these, which leaves out what is missing.
 * @throws CommandError 168 for an operator, 238 for what else is an expression.
 */
function compileExpression(expression: unknown): (document: Document) => unknown {
  if (Array.isArray(expression)) throw notOffered("an array of expressions");
  if (isDocument(expression)) return compileDocument(expression);
  if (typeof expression !== "string" || !expression.startsWith("$")) return () => expression;
  const name = expression.slice(1);
  if (name === "" || name.startsWith("$") || name.includes(".")) throw notOffered(`${expression} in an expression`);
  return (document) => getField(document, name);
}

function compileDocument(expression: Document): (document: Document) => Document {
  const operator = Object.keys(expression).find((name) => name.startsWith("$"));
  if (operator !== undefined) throw notOffered(operator, "InvalidPipelineOperator");
  const fields = Object.entries(expression).map(([name, value]) => [name, compileExpression(value)] as const);
  return (document) =>
    Object.fromEntries(fields.map(([name, read]) => [name, read(document)]).filter(([, value]) => value !== undefined));
}
