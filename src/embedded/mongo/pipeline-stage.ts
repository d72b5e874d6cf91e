import type { Document } from "bson";
import type { EvaluationContext, OuterContext } from "./expression-arguments.ts";

/** What a pipeline may ask of the engine, and the variables of the pipeline that it stands in. */
export type PipelineContext = {
  /** The documents of another collection of the database that match; the engine may answer by an index. */
  find(collection: string, filter: Document): Iterable<Document>;
  variables?: EvaluationContext["variables"];
  now?: Date;
};

/** A compiled stage: lazy where it can be, so that `$limit` ends the work of those before it. */
export type Stage = (documents: Iterable<Document>) => Iterable<Document>;

/** Runs stages; handed to the stages that contain pipelines. */
export type RunPipeline = (
  stages: readonly Document[],
  input: Iterable<Document>,
  context: PipelineContext,
) => Document[];

/** The variables and the clock for the expressions of a pipeline. */
export function outerOf(context: PipelineContext): OuterContext {
  return { variables: context.variables ?? {}, now: context.now ?? new Date() };
}

/** The names of the variables in scope. */
export function variableNames(context: PipelineContext): string[] {
  return Object.keys(context.variables ?? {});
}

/** A stage that makes one document of each. */
export function mapping(change: (document: Document) => Document): Stage {
  return function* (documents) {
    for (const document of documents) yield change(document);
  };
}
