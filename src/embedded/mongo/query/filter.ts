import { type Document, isDocument } from "../bson/bson-types.ts";
import { someAtPath } from "../bson/path-values.ts";
import { badValue, notOffered } from "../command-error.ts";
import { compileCondition, isOperatorDocument, type Matcher } from "./filter-operators.ts";

/** Every operator at the top of a filter: what is not here is refused. */
export const logicalOperators: Readonly<Record<string, (matchers: readonly Matcher[]) => Matcher>> = {
  $and: all,
  $or: any,
};

/**
 * The matcher of a query filter. Operators not on the list are refused when the filter is compiled, not when it runs.
 * https://www.mongodb.com/docs/manual/reference/operator/query/
 * @throws CommandError as MongoDB for an unknown operator or a malformed operand.
 */
export function compileFilter(filter: Document): Matcher {
  return all(Object.keys(filter).map((name) => compileClause(name, filter[name])));
}

function all(clauses: readonly Matcher[]): Matcher {
  const [only] = clauses;
  if (only !== undefined && clauses.length === 1) return only;
  return (document) => clauses.every((clause) => clause(document));
}

function any(clauses: readonly Matcher[]): Matcher {
  return (document) => clauses.some((clause) => clause(document));
}

function compileClause(name: string, condition: unknown): Matcher {
  if (!name.startsWith("$")) return compileField(name, condition);
  const combine = Object.hasOwn(logicalOperators, name) ? logicalOperators[name] : undefined;
  if (combine === undefined) throw notOffered(name, "BadValue");
  if (!Array.isArray(condition)) throw badValue(`${name} must be an array`);
  if (condition.length === 0) throw badValue("$and/$or/$nor must be a nonempty array");
  return combine(
    condition.map((entry: unknown) => {
      if (!isDocument(entry)) throw badValue("$or/$and/$nor entries need to be full objects");
      return compileFilter(entry);
    }),
  );
}

function compileField(path: string, condition: unknown): Matcher {
  const conditions = compileCondition(condition, compileFilter);
  const parts = path.split(".");
  return (document) =>
    conditions.every((test) => test((visit, wholeLeaf) => someAtPath(document, parts, visit, { wholeLeaf })));
}

/** The `path: value` pairs that an upsert takes over from its filter: its equalities. @throws CommandError 238 for `$and` and `$or`. */
export function filterEqualities(filter: Document): [string, unknown][] {
  return Object.entries(filter).flatMap(([name, value]: [string, unknown]): [string, unknown][] => {
    if (name.startsWith("$")) throw notOffered(`an upsert by ${name}`);
    if (!isOperatorDocument(value)) return [[name, value]];
    return Array.isArray(value.$in) && value.$in.length === 1 ? [[name, value.$in[0]]] : [];
  });
}
