import type { Document } from "./bson-types.ts";
import type { Collection } from "./collection.ts";
import { type IndexScan, type Plan, planQuery } from "./planner.ts";
import type { Query } from "./query.ts";
import { runPlan } from "./scan.ts";

/** How a query would be answered, in the shape of MongoDB's `queryPlanner.winningPlan`. */
export function explainQuery(collection: Collection | undefined, query: Query): Document {
  if (collection === undefined) return { stage: "EOF" };
  const plan = planQuery(collection, query);
  let stage = describeAccess(plan, query);
  const sort = query.sort ?? {};
  if (!plan.isSorted && Object.keys(sort).length > 0) {
    stage = { stage: "SORT", sortPattern: sort, memLimit: 104_857_600, type: "simple", inputStage: stage };
  }
  if (query.limit) stage = { stage: "LIMIT", limitAmount: query.limit, inputStage: stage };
  return stage;
}

/** What running it reads: documents looked at, and documents that match. */
export function explainExecution(collection: Collection | undefined, query: Query): Document {
  let examined = 0;
  let returned = 0;
  const started = performance.now();
  if (collection !== undefined) {
    const plan = planQuery(collection, query);
    const wanted = plan.isSorted && query.limit ? query.limit : Number.POSITIVE_INFINITY;
    const onExamined = () => {
      examined++;
    };
    for (const _row of runPlan(collection, plan, query.filter, { deadline: query.deadline, onExamined })) {
      returned++;
      if (returned >= wanted) break;
    }
    const isIndexed = plan.scans.length > 0;
    return {
      executionSuccess: true,
      nReturned: query.limit ? Math.min(returned, query.limit) : returned,
      executionTimeMillis: Math.round(performance.now() - started),
      totalKeysExamined: isIndexed ? examined : 0,
      totalDocsExamined: examined,
    };
  }
  return { executionSuccess: true, nReturned: 0, executionTimeMillis: 0, totalKeysExamined: 0, totalDocsExamined: 0 };
}

function describeAccess(plan: Plan, query: Query): Document {
  const filter = plan.isExact ? {} : { filter: query.filter };
  const [scan, ...others] = plan.scans;
  if (scan === undefined) {
    return { stage: "COLLSCAN", ...filter, direction: "forward" };
  }
  const inputStage =
    others.length === 0 ? describeScan(scan) : { stage: "OR", inputStages: [scan, ...others].map(describeScan) };
  return { stage: "FETCH", ...filter, inputStage };
}

function describeScan({ index, ranges, isBackward, narrowed }: IndexScan): Document {
  return {
    stage: "IXSCAN",
    keyPattern: index.spec.key,
    indexName: index.name,
    isMultiKey: index.multikey !== 0,
    isUnique: index.isUnique,
    isSparse: index.isSparse,
    isPartial: index.partialFilter !== undefined,
    indexVersion: 2,
    direction: isBackward ? "backward" : "forward",
    // Bounds are ranges of bytes here: how many there are, and how many fields they narrow.
    narrowedFields: narrowed,
    ranges: ranges.length,
  };
}
