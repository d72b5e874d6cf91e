import type { Document } from "bson";
import { bsonTag, isDocument } from "./bson-types.ts";
import { commandError, notImplemented } from "./command-error.ts";
import { compileCombiningStage } from "./pipeline-combine.ts";
import { compileGroupingStage } from "./pipeline-group.ts";
import { compileShapingStage } from "./pipeline-shape.ts";
import type { PipelineContext, Stage } from "./pipeline-stage.ts";
import { invalidOptions, located, typeMismatch } from "./refusals.ts";

/** Stages that MongoDB has and this server leaves out. */
const leftOut = new Set(
  "$out $merge $bucketAuto $graphLookup $setWindowFields $densify $fill $redact $documents $geoNear $changeStream $currentOp $indexStats $planCacheStats $listSessions $rankFusion $scoreFusion $searchMeta $collStats".split(
    " ",
  ),
);

/** Stages that the engine runs itself, before the pipeline begins. */
const firstOnly = new Set(["$vectorSearch", "$search", "$listSearchIndexes"]);

/**
 * Runs aggregation stages over documents, which are not changed: stages make new ones.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/
 * @throws CommandError as MongoDB for unknown stages and malformed operands (before the first document) and for values
 *   that an expression cannot take (while running).
 */
export function runPipeline(
  stages: readonly Document[],
  input: Iterable<Document>,
  context: PipelineContext,
): Document[] {
  const compiled = compilePipeline(stages, context);
  let documents = input;
  for (const stage of compiled) documents = stage(documents);
  return [...documents];
}

/** Compiles the stages and throws what is wrong with them, without running anything. */
export function validatePipeline(stages: readonly Document[]): void {
  compilePipeline(stages, { find: () => [] });
}

/** Runs a pipeline that is an update, over one document. */
export function runUpdatePipeline(stages: readonly Document[], document: Document): Document {
  for (const stage of stages) {
    const name = stageName(stage);
    if (!["$set", "$addFields", "$unset", "$project", "$replaceRoot", "$replaceWith"].includes(name)) {
      throw invalidOptions(`${name} is not allowed to be used within an update`);
    }
  }
  const [result] = runPipeline(stages, [document], { find: () => [] });
  return result ?? document;
}

function compilePipeline(stages: readonly Document[], context: PipelineContext): Stage[] {
  const bound: PipelineContext = { now: new Date(), ...context };
  return stages.map((stage) => compileStage(stageName(stage), Object.values(stage)[0], bound));
}

function stageName(stage: unknown): string {
  if (!isDocument(stage) || bsonTag(stage) !== undefined) {
    throw typeMismatch("Each element of the 'pipeline' array must be an object");
  }
  const [name, ...others] = Object.keys(stage);
  if (name === undefined || others.length > 0) {
    throw located(40323, "A pipeline stage specification object must contain exactly one field.");
  }
  return name;
}

function compileStage(name: string, operand: unknown, context: PipelineContext): Stage {
  const stage =
    compileShapingStage(name, operand, context) ??
    compileGroupingStage(name, operand, context) ??
    compileCombiningStage(name, operand, context, runPipeline);
  if (stage !== undefined) return stage;
  if (firstOnly.has(name))
    throw commandError("Location40602", `${name} is only valid as the first stage in a pipeline`);
  if (leftOut.has(name)) throw notImplemented(`The ${name} stage`);
  throw commandError("Location40324", `Unrecognized pipeline stage name: '${name}'`);
}
