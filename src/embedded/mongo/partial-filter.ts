import { isDeepStrictEqual } from "node:util";
import type { Document } from "./bson-types.ts";
import { compileFilter } from "./filter.ts";
import { isOperatorDocument } from "./filter-operators.ts";
import type { Conjunction, Predicates } from "./predicates.ts";

/**
 * Whether every document that a query matches is in a partial index. Only sure cases are answered with yes: the query
 * fixes the path to values that satisfy the index's condition, or bounds it at least as tightly.
 */
export function impliesPartial(conjunction: Conjunction, partialFilter: Document): boolean {
  return Object.entries(partialFilter).every(([path, condition]) => {
    if (path === "$and" && Array.isArray(condition)) {
      return condition.every((part) => impliesPartial(conjunction, part as Document)); // checked at creation
    }
    if (path === "$or" && Array.isArray(condition)) {
      return condition.some((part) => impliesPartial(conjunction, part as Document)); // likewise
    }
    const predicates = conjunction.paths.get(path);
    return predicates !== undefined && impliesCondition(path, predicates, condition);
  });
}

function impliesCondition(path: string, predicates: Predicates, condition: unknown): boolean {
  if (predicates.equals !== undefined && !path.includes(".")) {
    const matches = compileFilter({ [path]: condition });
    return predicates.equals.length > 0 && predicates.equals.every((value) => matches({ [path]: value }));
  }
  if (predicates.equals !== undefined) {
    const matches = compileFilter({ value: condition });
    return predicates.equals.length > 0 && predicates.equals.every((value) => matches({ value }));
  }
  if (!isOperatorDocument(condition)) return false;
  return Object.entries(condition).every(([operator, operand]) => impliesOperator(predicates, operator, operand));
}

function impliesOperator(predicates: Predicates, operator: string, operand: unknown): boolean {
  switch (operator) {
    case "$exists":
      return operand === true && predicates.needsPresence;
    case "$gt":
    case "$gte": {
      const { from } = predicates;
      if (from === undefined) return false;
      if (isDeepStrictEqual(from.value, operand)) return operator === "$gte" || !from.isInclusive;
      return compileFilter({ value: { $gt: operand } })({ value: from.value });
    }
    case "$lt":
    case "$lte": {
      const { to } = predicates;
      if (to === undefined) return false;
      if (isDeepStrictEqual(to.value, operand)) return operator === "$lte" || !to.isInclusive;
      return compileFilter({ value: { $lt: operand } })({ value: to.value });
    }
    default:
      return false;
  }
}
