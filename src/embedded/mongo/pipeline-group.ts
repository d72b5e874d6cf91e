import type { Document } from "bson";
import { type Accumulator, compileAccumulators } from "./accumulators.ts";
import { canonicalTypeOf, isDocument, setField, typeName } from "./bson-types.ts";
import { compareValues } from "./compare.ts";
import { compileExpression } from "./expression.ts";
import { type EvaluationContext, type OuterContext, rootContext } from "./expression-arguments.ts";
import { makeInteger } from "./numbers.ts";
import { outerOf, type PipelineContext, type Stage, variableNames } from "./pipeline-stage.ts";
import { located } from "./refusals.ts";
import { ValueMap } from "./value-set.ts";

/** The stages that make one document of many; undefined for another stage's name. */
export function compileGroupingStage(name: string, operand: unknown, context: PipelineContext): Stage | undefined {
  switch (name) {
    case "$group":
      return group(operand, context);
    case "$count":
      return count(operand);
    case "$sortByCount":
      return sortByCount(operand, context);
    case "$bucket":
      return bucket(operand, context);
    default:
      return undefined;
  }
}

type Group = { key: unknown; members: EvaluationContext[] };

function group(operand: unknown, context: PipelineContext): Stage {
  if (!isDocument(operand)) throw located(15947, "a group's fields must be specified in an object");
  if (!("_id" in operand)) throw located(15955, "a group specification must include an _id");
  const { _id: id, ...fields } = operand;
  const key = compileExpression(id, variableNames(context));
  const accumulators = compileAccumulators(fields, variableNames(context));
  const outer = outerOf(context);
  return function* (documents) {
    for (const found of collect(documents, (member) => key(member) ?? null, outer)) {
      yield summary(found.key, found.members, accumulators);
    }
  };
}

/** Groups documents by a key, in the order in which the keys came; keys are equal as BSON values are. */
function collect(
  documents: Iterable<Document>,
  keyOf: (context: EvaluationContext) => unknown,
  outer: OuterContext,
): Group[] {
  const byKey = new ValueMap<Group>();
  const groups: Group[] = [];
  for (const document of documents) {
    const member = rootContext(document, outer);
    const key = keyOf(member);
    let found = byKey.get(key);
    if (found === undefined) {
      found = { key, members: [] };
      byKey.set(key, found);
      groups.push(found);
    }
    found.members.push(member);
  }
  return groups;
}

function summary(
  key: unknown,
  members: readonly EvaluationContext[],
  accumulators: readonly [string, Accumulator][],
): Document {
  const result: Document = { _id: key };
  for (const [field, accumulate] of accumulators) setField(result, field, accumulate(members));
  return result;
}

function count(operand: unknown): Stage {
  if (typeof operand !== "string") throw located(40156, "the count field must be a non-empty string");
  if (operand === "") throw located(40157, "the count field must be a non-empty string");
  if (operand.startsWith("$")) throw located(40158, "the count field cannot be a $-prefixed path");
  if (operand.includes(".")) throw located(40160, "the count field cannot contain '.'");
  return function* (documents) {
    let total = 0;
    for (const _ of documents) total += 1;
    if (total > 0) yield { [operand]: makeInteger(total) };
  };
}

function sortByCount(operand: unknown, context: PipelineContext): Stage {
  const isPath = typeof operand === "string" && operand.startsWith("$");
  const isExpression = isDocument(operand) && Object.keys(operand)[0]?.startsWith("$") === true;
  if (!isPath && !isExpression) {
    throw located(40149, "the sortByCount field must be defined as a $-prefixed path or an expression");
  }
  const key = compileExpression(operand, variableNames(context));
  return (documents) =>
    collect(documents, (member) => key(member) ?? null, outerOf(context))
      .sort((a, b) => b.members.length - a.members.length)
      .map((found) => ({ _id: found.key, count: makeInteger(found.members.length) }));
}

function bucket(operand: unknown, context: PipelineContext): Stage {
  if (!isDocument(operand))
    throw located(40201, `Argument to $bucket stage must be an object, but found type: ${typeName(operand)}`);
  const { groupBy, boundaries, default: otherwise, output = { count: { $sum: 1 } }, ...strangers } = operand;
  const [stranger] = Object.keys(strangers);
  if (stranger !== undefined) throw located(40197, `Unrecognized option to $bucket: ${stranger}.`);
  if (groupBy === undefined || boundaries === undefined) {
    throw located(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
  }
  const bounds = checkBoundaries(boundaries);
  if (!isDocument(output)) throw located(40196, "The $bucket 'output' field must be an object");
  const key = compileExpression(groupBy, variableNames(context));
  const accumulators = compileAccumulators(output, variableNames(context));
  const bucketOf = (member: EvaluationContext) => {
    const value = key(member);
    const above = bounds.findIndex((bound) => compareValues(value, bound) < 0);
    if (above > 0) return bounds[above - 1];
    if (otherwise !== undefined) return otherwise;
    throw located(40066, "$switch could not find a matching branch for an input, and no default was specified.");
  };
  return (documents) =>
    collect(documents, bucketOf, outerOf(context))
      .sort((a, b) => compareValues(a.key, b.key))
      .map((found) => summary(found.key, found.members, accumulators));
}

function checkBoundaries(boundaries: unknown): unknown[] {
  if (!Array.isArray(boundaries))
    throw located(40200, `The $bucket 'boundaries' field must be an array, but found type: ${typeName(boundaries)}`);
  if (boundaries.length < 2)
    throw located(
      40192,
      `The $bucket 'boundaries' field must have at least 2 values, but found ${boundaries.length} value(s).`,
    );
  for (const [at, bound] of boundaries.entries()) {
    const before: unknown = boundaries[at - 1];
    if (at === 0) continue;
    if (canonicalTypeOf(before) !== canonicalTypeOf(bound)) {
      throw located(40193, "All values in the the 'boundaries' option to $bucket must have the same type.");
    }
    if (compareValues(before, bound) >= 0) {
      throw located(40194, "The 'boundaries' option to $bucket must be sorted in ascending order.");
    }
  }
  return boundaries;
}
