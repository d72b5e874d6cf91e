import type { Document } from "bson";
import { isDocument, setField, typeName } from "./bson-types.ts";
import { commandError } from "./command-error.ts";
import { compileExpression } from "./expression.ts";
import { type Expression, rootContext } from "./expression-arguments.ts";
import { assertVariableName } from "./expression-logic.ts";
import { someAtPath } from "./path-values.ts";
import {
  mapping,
  outerOf,
  type PipelineContext,
  type RunPipeline,
  type Stage,
  variableNames,
} from "./pipeline-stage.ts";
import { addComputed } from "./projection.ts";
import { addRule, newNode } from "./projection-tree.ts";
import { failedToParse, located } from "./refusals.ts";
import { isRegex } from "./regex.ts";
import { keepScore } from "./search-score.ts";

/** The stages that contain pipelines or read other collections; undefined for another stage's name. */
export function compileCombiningStage(
  name: string,
  operand: unknown,
  context: PipelineContext,
  run: RunPipeline,
): Stage | undefined {
  switch (name) {
    case "$facet":
      return facet(operand, context, run);
    case "$lookup":
      return lookup(operand, context, run);
    case "$unionWith":
      return unionWith(operand, context, run);
    default:
      return undefined;
  }
}

const notInFacet = new Set(["$facet", "$out", "$merge", "$vectorSearch", "$search", "$geoNear", "$collStats"]);

function facet(operand: unknown, context: PipelineContext, run: RunPipeline): Stage {
  if (!isDocument(operand))
    throw located(40169, `the $facet specification must be a non-empty object, got ${typeName(operand)}`);
  const names = Object.keys(operand);
  if (names.length === 0) throw located(40169, "the $facet specification must be a non-empty object");
  const pipelines = names.map((name) => {
    const stages = asPipeline(operand[name], `arguments to $facet must be arrays, ${name} is`);
    for (const stage of stages) {
      const forbidden = Object.keys(stage).find((key) => notInFacet.has(key));
      if (forbidden !== undefined) throw located(40600, `${forbidden} is not allowed to be used within a $facet stage`);
    }
    run(stages, [], context); // what is wrong with a pipeline is told before any document is read
    return [name, stages] as const;
  });
  return (documents) => {
    const input = [...documents];
    const result: Document = {};
    for (const [name, stages] of pipelines) setField(result, name, run(stages, input, context));
    return [result];
  };
}

function asPipeline(value: unknown, complaint: string): Document[] {
  if (!Array.isArray(value)) throw located(40170, `${complaint} type ${typeName(value)}`);
  return value.map((stage: unknown) => {
    if (!isDocument(stage)) throw located(40171, "elements of arrays in a pipeline must be objects");
    return stage;
  });
}

type Lookup = {
  from: string;
  as: string;
  localField: string | undefined;
  foreignField: string | undefined;
  variables: readonly (readonly [string, Expression])[];
  pipeline: readonly Document[];
};

function lookup(operand: unknown, context: PipelineContext, run: RunPipeline): Stage {
  const options = lookupOptions(operand, context);
  const names = options.variables.map(([name]) => [name, null]);
  run(options.pipeline, [], { ...context, variables: { ...context.variables, ...Object.fromEntries(names) } });
  return mapping((document) => {
    const outer = outerOf(context);
    const root = rootContext(document, outer);
    const added = Object.fromEntries(options.variables.map(([name, value]) => [name, value(root)]));
    const found = context.find(options.from, joinFilter(document, options));
    const variables = { ...outer.variables, ...added };
    const matches = run(options.pipeline, found, { ...context, variables });
    const node = newNode();
    addRule(node, options.as, { kind: "compute", expression: () => matches });
    return keepScore(document, addComputed(node, document, root));
  });
}

const lookupFields = ["from", "as", "localField", "foreignField", "let", "pipeline"];

function lookupOptions(operand: unknown, context: PipelineContext): Lookup {
  if (!isDocument(operand))
    throw failedToParse(`the $lookup specification must be an Object, but found ${typeName(operand)}`);
  const stranger = Object.keys(operand).find((name) => !lookupFields.includes(name));
  if (stranger !== undefined) throw failedToParse(`unknown argument to $lookup: ${stranger}`);
  for (const name of ["from", "as", "localField", "foreignField"]) {
    const value: unknown = operand[name];
    if (value !== undefined && typeof value !== "string") {
      throw failedToParse(`$lookup argument '${name}: ${String(value)}' must be a string, found ${typeName(value)}`);
    }
  }
  const { from, as, localField, foreignField, let: vars = {}, pipeline } = operand;
  if (as === undefined) throw failedToParse("must specify 'as' field for a $lookup");
  if (from === undefined) throw failedToParse("must specify 'from' field for a $lookup");
  if ((localField === undefined) !== (foreignField === undefined)) {
    throw failedToParse("$lookup requires both or neither of 'localField' and 'foreignField' to be specified");
  }
  if (pipeline === undefined && localField === undefined) {
    throw failedToParse("$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified");
  }
  if (!isDocument(vars)) throw failedToParse("$lookup argument 'let' must be an object");
  const variables = Object.keys(vars).map((name) => {
    assertVariableName(name);
    return [name, compileExpression(vars[name], variableNames(context))] as const;
  });
  const stages = pipeline === undefined ? [] : asPipeline(pipeline, "$lookup argument 'pipeline' must be an array, is");
  return { from, as, localField, foreignField, variables, pipeline: stages };
}

/** Equality of any local value with any foreign one; a local field that is missing or null matches missing and null. */
function joinFilter(document: Document, { localField, foreignField }: Lookup): Document {
  if (localField === undefined || foreignField === undefined) return {};
  const values: unknown[] = [];
  someAtPath(document, localField.split("."), (value) => {
    // An array is visited by its elements first and as a whole last: the elements are what joins.
    if (!Array.isArray(value)) values.push(value ?? null);
    return false;
  });
  const [only] = values;
  if (values.length === 0) return { [foreignField]: { $in: [] } };
  if (values.length === 1) return { [foreignField]: { $eq: only } };
  return values.some(isRegex)
    ? { $or: values.map((value) => ({ [foreignField]: { $eq: value } })) }
    : { [foreignField]: { $in: values } };
}

function unionWith(operand: unknown, context: PipelineContext, run: RunPipeline): Stage {
  const fields: Document = isDocument(operand) ? operand : { coll: operand };
  const stranger = Object.keys(fields).find((name) => name !== "coll" && name !== "pipeline");
  if (stranger !== undefined)
    throw commandError("Location40415", `BSON field '$unionWith.${stranger}' is an unknown field.`);
  const coll: unknown = fields.coll;
  if (typeof coll !== "string") throw failedToParse("the $unionWith stage requires the name of a collection");
  const stages =
    fields.pipeline === undefined ? [] : asPipeline(fields.pipeline, "$unionWith's pipeline must be an array, is");
  run(stages, [], context);
  return function* (documents) {
    yield* documents;
    yield* run(stages, context.find(coll, {}), context);
  };
}
