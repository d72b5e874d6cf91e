import { type Document, isDocument } from "../bson/bson-types.ts";
import { notOffered, typeMismatch } from "../command-error.ts";
import { type Plan, planQuery } from "../query/planner.ts";
import type { Query } from "../query/query.ts";
import { runPlan } from "../query/scan.ts";
import type { Collection } from "../storage/collection.ts";
import { readPipeline, splitPipeline } from "./aggregate.ts";
import { type CommandContext, type CommandFamily, findCollection } from "./command.ts";
import { readFind } from "./find.ts";

export const explainCommands: CommandFamily = { explain: { fields: ["verbosity"], run: explain } };

const verbosities: readonly unknown[] = ["queryPlanner", "executionStats"];

function explain(context: CommandContext, body: Document): Document {
  const inner: unknown = body.explain;
  if (!isDocument(inner)) throw typeMismatch("BSON field 'explain.explain' is the wrong type, expected type 'object'");
  const verbosity: unknown = body.verbosity;
  if (!verbosities.includes(verbosity)) throw notOffered(`the verbosity ${String(verbosity)} of explain`);
  const name = Object.keys(inner)[0] ?? "";
  const collection = findCollection(context, name, inner[name]);
  const query = readQuery(name, inner);
  const queryPlanner = { winningPlan: explainQuery(collection, query) };
  if (verbosity === "queryPlanner") return { queryPlanner };
  return { queryPlanner, executionStats: explainExecution(collection, query) };
}

/** The query inside a command that can be explained. */
function readQuery(name: string, inner: Document): Query {
  switch (name) {
    case "find":
      return readFind(inner).query;
    case "aggregate":
      return splitPipeline(readPipeline(inner)).query;
    default:
      throw notOffered(`explain of ${name}`);
  }
}

/** How a query would be answered, in the shape of MongoDB's `queryPlanner.winningPlan`. */
function explainQuery(collection: Collection | undefined, query: Query): Document {
  if (collection === undefined) return { stage: "EOF" };
  const plan = planQuery(collection, query);
  let stage = describeAccess(plan);
  if (!plan.isSorted) stage = { stage: "SORT", inputStage: stage };
  return query.limit ? { stage: "LIMIT", inputStage: stage } : stage;
}

/** What running it reads: documents looked at, and documents that match. */
function explainExecution(collection: Collection | undefined, query: Query): Document {
  const counts = { nReturned: 0, totalDocsExamined: 0 };
  if (collection === undefined) return counts;
  const plan = planQuery(collection, query);
  const onExamined = () => {
    counts.totalDocsExamined++;
  };
  const limit = query.limit || Number.POSITIVE_INFINITY;
  for (const _row of runPlan(collection, plan, query.filter, { onExamined })) {
    counts.nReturned = Math.min(counts.nReturned + 1, limit);
    if (plan.isSorted && counts.nReturned === limit) break;
  }
  return counts;
}

function describeAccess({ scan }: Plan): Document {
  if (scan === undefined) return { stage: "COLLSCAN" };
  const direction = scan.isBackward ? "backward" : "forward";
  return { stage: "FETCH", inputStage: { stage: "IXSCAN", indexName: scan.index.name, direction } };
}
