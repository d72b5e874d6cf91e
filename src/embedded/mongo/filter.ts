import type { Document } from "bson";
import { isDocument } from "./bson-types.ts";
import { commandError, notImplemented } from "./command-error.ts";
import { compileExpression } from "./expression.ts";
import { isTruthy, type OuterContext, rootContext } from "./expression-arguments.ts";
import { type Condition, compileCondition, isOperatorDocument, type Recorder } from "./filter-operators.ts";
import { someAtPath } from "./path-values.ts";
import { badValue, failedToParse } from "./refusals.ts";
import { isRegex } from "./regex.ts";

/** Whether a document matches; `record` is told which array elements the match rests on. */
export type Matcher = (document: Document, record?: Recorder) => boolean;

/**
 * The matcher of a query filter. Operators not on the list are refused when the filter is compiled, not when it runs.
 * https://www.mongodb.com/docs/manual/reference/operator/query/
 * @throws CommandError as MongoDB for an unknown operator or a malformed operand.
 */
export function compileFilter(filter: Document, outer?: OuterContext): (document: Document) => boolean {
  return compileMatcher(filter, outer);
}

/** As `compileFilter`, for the callers that need to know which array element matched. */
export function compileMatcher(filter: Document, outer?: OuterContext): Matcher {
  const clauses = Object.keys(filter).flatMap((name) => {
    const clause = compileClause(name, filter[name], outer);
    return clause === undefined ? [] : [clause];
  });
  return all(clauses);
}

function all(clauses: readonly Matcher[]): Matcher {
  const [only] = clauses;
  if (only !== undefined && clauses.length === 1) return only;
  return (document, record) => clauses.every((clause) => clause(document, record));
}

function compileClause(name: string, condition: unknown, outer?: OuterContext): Matcher | undefined {
  if (!name.startsWith("$")) return compileField(name, condition);
  switch (name) {
    case "$and":
      return all(subFilters(name, condition, outer));
    case "$or":
      return any(subFilters(name, condition, outer));
    case "$nor": {
      const some = any(subFilters(name, condition, outer));
      return (document) => !some(document);
    }
    case "$expr": {
      const expression = compileExpression(condition, Object.keys(outer?.variables ?? {}));
      return (document) => isTruthy(expression(rootContext(document, outer)));
    }
    case "$comment":
      return undefined;
    case "$text":
      throw commandError("IndexNotFound", "text index required for $text query");
    case "$where":
      throw badValue("no globalScriptEngine in $where parsing");
    case "$jsonSchema":
    case "$sampleRate":
    case "$alwaysTrue":
    case "$alwaysFalse":
      throw notImplemented(name);
    default:
      throw badValue(
        `unknown top level operator: ${name}. If you have a field name that starts with a '$' symbol, consider using $getField or $setField.`,
      );
  }
}

function subFilters(name: string, operand: unknown, outer?: OuterContext): Matcher[] {
  if (!Array.isArray(operand)) throw badValue(`${name} must be an array`);
  if (operand.length === 0) throw badValue("$and/$or/$nor must be a nonempty array");
  return operand.map((entry: unknown) => {
    if (!isDocument(entry)) throw badValue("$or/$and/$nor entries need to be full objects");
    return compileMatcher(entry, outer);
  });
}

function any(matchers: readonly Matcher[]): Matcher {
  return (document, record) => matchers.some((matcher) => matcher(document, record));
}

function compileField(path: string, condition: unknown): Matcher {
  const conditions = compileCondition(condition, compileMatcher);
  const parts = path.split(".");
  return (document, record) => conditions.every((test) => testAtPath(test, document, parts, path, record));
}

function testAtPath(
  test: Condition,
  document: Document,
  parts: readonly string[],
  path: string,
  record: Recorder | undefined,
): boolean {
  return test(
    (visit, wholeLeaf) =>
      someAtPath(
        document,
        parts,
        (value, position) => {
          if (!visit(value)) return false;
          if (position !== undefined) record?.(path, position);
          return true;
        },
        { wholeLeaf },
      ),
    (position) => record?.(path, position),
  );
}

/** A test of one value against an operator document, a pattern or a literal, as `$pull` and `$elemMatch` apply it. */
export function compileValueTest(condition: unknown): (value: unknown) => boolean {
  const conditions = compileCondition(condition, compileMatcher);
  return (value) => conditions.every((test) => test((visit) => visit(value), ignore));
}

const ignore = () => undefined;

/**
 * The element of the array at `arrayPath` that the filter matched: what `$` stands for in an update or a projection.
 * Where several conditions match elements, one on that array decides; undefined when no condition did.
 */
export function matchedPosition(filter: Document, document: Document, arrayPath: string): number | undefined {
  const found: { path: string; position: number }[] = [];
  if (!compileMatcher(filter)(document, (path, position) => void found.push({ path, position }))) return undefined;
  const isOnArray = (path: string) => path === arrayPath || path.startsWith(`${arrayPath}.`);
  return (found.findLast(({ path }) => isOnArray(path)) ?? found.at(-1))?.position;
}

/** The one name at the top of an array filter, as `e` in `{"e.x": 1}`; in `$and`/`$or` all names must agree. */
export function arrayFilterName(filter: Document): string {
  const names = new Set(topNames(filter));
  const [name, other] = names;
  if (name === undefined) {
    throw failedToParse("Cannot use an expression without a top-level field name in arrayFilters");
  }
  if (other !== undefined) {
    throw failedToParse(
      `Error parsing array filter :: caused by :: Expected a single top-level field name, found '${name}' and '${other}'`,
    );
  }
  if (!/^[a-z][A-Za-z0-9]*$/.test(name)) {
    throw badValue(
      `Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '${name}'`,
    );
  }
  return name;
}

function topNames(filter: Document): string[] {
  return Object.entries(filter).flatMap(([name, value]: [string, unknown]) => {
    if (!name.startsWith("$")) return [name.split(".")[0] ?? name];
    return Array.isArray(value) ? value.flatMap((entry: unknown) => (isDocument(entry) ? topNames(entry) : [])) : [];
  });
}

/** The `path: value` pairs that an upsert takes over from its filter: equalities, also inside `$and`, `$eq` and a single `$or`. */
export function filterEqualities(filter: Document): [string, unknown][] {
  return Object.entries(filter).flatMap(([name, value]: [string, unknown]): [string, unknown][] => {
    if (name === "$and" || (name === "$or" && Array.isArray(value) && value.length === 1)) {
      return Array.isArray(value)
        ? value.flatMap((entry: unknown) => (isDocument(entry) ? filterEqualities(entry) : []))
        : [];
    }
    if (name.startsWith("$")) return [];
    if (!isOperatorDocument(value)) return isRegex(value) ? [] : [[name, value]];
    if ("$eq" in value) return [[name, value.$eq]];
    const [single] = "$all" in value && Array.isArray(value.$all) && value.$all.length === 1 ? value.$all : [];
    if ("$in" in value && Array.isArray(value.$in) && value.$in.length === 1) return [[name, value.$in[0]]];
    return single === undefined ? [] : [[name, single]];
  });
}
