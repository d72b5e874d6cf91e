import { type Document, isDocument } from "../bson/bson-types.ts";
import { compareValues } from "../bson/order.ts";
import { notOffered } from "../command-error.ts";
import type { Conjunction } from "./predicates.ts";

/** The filter of a partial index: of each of its fields a value, or that it is there. @throws CommandError 238 for others. */
export function checkPartialFilter(filter: Document): void {
  for (const [path, condition] of Object.entries(filter)) {
    const isOffered = !path.startsWith("$") && (isPresence(condition) || !isDocument(condition));
    if (!isOffered) throw notOffered("an index on documents other than those with a field or a value");
  }
}

function isPresence(condition: unknown): boolean {
  return isDocument(condition) && Object.keys(condition).join() === "$exists" && condition.$exists === true;
}

/**
 * Whether every document that a query matches is in a partial index. Only sure cases are answered with yes: the query
 * fixes the path to values that the index has, or does not match where the path is missing.
 */
export function impliesPartial(conjunction: Conjunction, partialFilter: Document): boolean {
  return Object.entries(partialFilter).every(([path, condition]) => {
    const predicates = conjunction.paths.get(path);
    if (isPresence(condition)) return predicates?.needsPresence === true;
    if (predicates?.equals === undefined || predicates.equals.length === 0) return false;
    return predicates.equals.every((value) => compareValues(value, condition) === 0);
  });
}
