import type { Document } from "bson";
import { bsonTag, getField, isDocument, setField } from "./bson-types.ts";
import { compileExpression } from "./expression.ts";
import { type EvaluationContext, isTruthy, type OuterContext, rootContext } from "./expression-arguments.ts";
import { compileMatcher, compileValueTest, matchedPosition } from "./filter.ts";
import { isOperatorDocument } from "./filter-operators.ts";
import { numberKind, toSafeInteger } from "./numbers.ts";
import {
  addRule,
  type FieldRule,
  hasComputed,
  hasIncluded,
  mapDocuments,
  newNode,
  type ProjectionNode,
} from "./projection-tree.ts";
import { badValue, located } from "./refusals.ts";
import { keepScore } from "./search-score.ts";

export type Projection = (document: Document, outer?: OuterContext) => Document;

type Dialect = { isFind: boolean; filter?: Document | undefined; variables: readonly string[] };

/**
 * The projection of a find: inclusion or exclusion, `$slice`, `$elemMatch`, `field.$` (by `filter`), expressions, `$meta`.
 * https://www.mongodb.com/docs/manual/reference/method/db.collection.find/#projection
 * @throws CommandError for a mixture of inclusion and exclusion (31253, 31254) and for colliding paths (31249, 31250).
 */
export function compileProjection(projection: Document, filter?: Document): Projection {
  if (Object.keys(projection).length === 0) return (document) => document;
  return compileTree(projection, { isFind: true, filter, variables: [] });
}

/** The projection of `$project`: as that of a find, without its own operators. */
export function compileProjectStage(projection: Document, variables: readonly string[]): Projection {
  if (Object.keys(projection).length === 0) {
    throw located(51272, "Invalid $project :: caused by :: projection specification must have at least one field");
  }
  return compileTree(projection, { isFind: false, variables });
}

function compileTree(projection: Document, dialect: Dialect): Projection {
  const rules = flatten(projection, "", dialect);
  const decisive = rules.filter(({ path }) => path !== "_id");
  const included = decisive.find(({ rule, isNeutral }) => isNeutral !== true && rule.kind !== "exclude");
  const excluded = decisive.find(({ rule }) => rule.kind === "exclude");
  const idRule = rules.find(({ path }) => path === "_id")?.rule;
  const isOfId = idRule !== undefined && idRule.kind !== "exclude";
  const isInclusion = included !== undefined || (excluded === undefined && isOfId);
  if (included !== undefined && excluded !== undefined)
    throw mixture(rules.indexOf(included), rules.indexOf(excluded), included.path, excluded.path);
  const root = newNode();
  if (isInclusion && idRule === undefined) addRule(root, "_id", { kind: "include" });
  for (const { path, rule } of rules) {
    if (isInclusion && path === "_id" && rule.kind === "exclude") continue;
    addRule(root, path, rule);
  }
  return (document, outer) => {
    const context = rootContext(document, outer);
    return keepScore(
      document,
      addComputed(root, isInclusion ? include(root, document, document) : exclude(root, document, document), context),
    );
  };
}

function mixture(includedAt: number, excludedAt: number, included: string, excluded: string): Error {
  if (includedAt < excludedAt)
    return located(31254, `Cannot do exclusion on field ${excluded} in inclusion projection`);
  return located(31253, `Cannot do inclusion on field ${included} in exclusion projection`);
}

/** A neutral rule (`$slice`, `$meta`) fits an inclusion and an exclusion alike, and alone keeps every other field. */
type PathRule = { path: string; rule: FieldRule; isNeutral?: boolean };

function flatten(projection: Document, prefix: string, dialect: Dialect): PathRule[] {
  return Object.keys(projection).flatMap((name) => {
    if (name === "") throw located(40352, "FieldPath cannot be constructed with empty string");
    return toRules(`${prefix}${name}`, projection[name], dialect);
  });
}

function toRules(path: string, value: unknown, dialect: Dialect): PathRule[] {
  if (path.endsWith(".$")) return [{ path: path.slice(0, -2), rule: positional(path.slice(0, -2), dialect) }];
  if (path.split(".").some((part) => part.startsWith("$"))) {
    throw located(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
  }
  if (typeof value === "boolean" || numberKind(value) !== undefined) {
    return [{ path, rule: { kind: isTruthy(value) ? "include" : "exclude" } }];
  }
  if (isDocument(value) && bsonTag(value) === undefined && !isOperatorDocument(value)) {
    if (Object.keys(value).length === 0)
      throw located(51270, `An empty sub-projection is not a valid value. Found empty object at path`);
    return flatten(value, `${path}.`, dialect);
  }
  if (dialect.isFind && isOperatorDocument(value)) {
    if ("$slice" in value && isFindSlice(value.$slice)) return [{ path, rule: slice(value.$slice), isNeutral: true }];
    if ("$elemMatch" in value) return [{ path, rule: elementMatch(path, value.$elemMatch) }];
  }
  const isNeutral = isDocument(value) && "$meta" in value;
  return [{ path, rule: { kind: "compute", expression: compileExpression(value, dialect.variables) }, isNeutral }];
}

function positional(path: string, dialect: Dialect): FieldRule {
  if (!dialect.isFind) throw located(31324, "Cannot use positional projection in aggregation projection");
  return {
    kind: "transform",
    transform: (value, root) => {
      if (!Array.isArray(value)) return value;
      const position = matchedPosition(dialect.filter ?? {}, root, path);
      if (position === undefined) {
        throw located(
          51246,
          "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching element in the array",
        );
      }
      return position < value.length ? [value[position]] : [];
    },
  };
}

/** A find's `$slice` has numbers alone; with an array expression first it is the aggregation's. */
const isFindSlice = (operand: unknown) =>
  numberKind(operand) !== undefined || (Array.isArray(operand) && numberKind(operand[0]) !== undefined);

function slice(operand: unknown): FieldRule {
  const [first, count] = (Array.isArray(operand) ? operand : [operand]).map(toSafeInteger);
  if (first === undefined)
    throw located(28667, "Invalid $slice syntax. The given syntax did not match the find() syntax");
  if (Array.isArray(operand) && (count === undefined || count <= 0))
    throw located(28724, "First argument to $slice must be an array; its limit must be positive");
  const cut = (array: readonly unknown[]) => {
    if (count === undefined) return first < 0 ? array.slice(first) : array.slice(0, first);
    const from = first < 0 ? Math.max(0, array.length + first) : first;
    return array.slice(from, from + count);
  };
  return { kind: "transform", transform: (value) => (Array.isArray(value) ? cut(value) : value) };
}

function elementMatch(path: string, operand: unknown): FieldRule {
  if (path.includes(".")) throw located(31275, "Cannot use $elemMatch projection on a nested field.");
  if (!isDocument(operand)) throw badValue("elemMatch: Invalid argument, object required, but got another type");
  const isOfValues = isOperatorDocument(operand) && !["$and", "$or", "$nor"].includes(Object.keys(operand)[0] ?? "");
  const matches = isOfValues ? undefined : compileMatcher(operand);
  const test = matches === undefined ? compileValueTest(operand) : (item: unknown) => isDocument(item) && matches(item);
  return {
    kind: "compute",
    expression: ({ root }) => {
      const array = getField(root, path);
      const found: unknown = Array.isArray(array) ? array.find(test) : undefined;
      return found === undefined ? undefined : [found];
    },
  };
}

function includeValue(rule: FieldRule, value: unknown, whole: Document): unknown {
  if (rule.kind === "transform") return rule.transform(value, whole);
  if (rule.kind !== "node") return value;
  if (!hasIncluded(rule) && !Array.isArray(value)) return undefined;
  return mapDocuments(
    value,
    (inner) => include(rule, inner, whole),
    () => undefined,
  );
}

function include(node: ProjectionNode, document: Document, whole: Document): Document {
  const result: Document = {};
  for (const name of Object.keys(document)) {
    const rule = node.fields.get(name);
    if (rule === undefined || rule.kind === "compute" || rule.kind === "exclude") continue;
    const value = includeValue(rule, document[name], whole);
    if (value !== undefined) setField(result, name, value);
  }
  return result;
}

/** Sets the computed fields: those that are there keep their place, new ones follow in the order of the specification. */
export function addComputed(node: ProjectionNode, document: Document, context: EvaluationContext): Document {
  if (!hasComputed(node)) return document;
  const result: Document = { ...document };
  for (const [name, rule] of node.fields) {
    if (rule.kind === "compute") {
      const value = rule.expression(context);
      if (value === undefined) delete result[name];
      else setField(result, name, value);
    } else if (rule.kind === "node" && hasComputed(rule)) {
      const inner = mapDocuments(
        getField(result, name),
        (nested) => addComputed(rule, nested, context),
        () => addComputed(rule, {}, context),
      );
      setField(result, name, inner);
    }
  }
  return result;
}

function exclude(node: ProjectionNode, document: Document, whole: Document): Document {
  const result: Document = {};
  for (const name of Object.keys(document)) {
    const rule = node.fields.get(name);
    if (rule?.kind === "exclude") continue;
    setField(result, name, rule === undefined ? document[name] : excludeValue(rule, document[name], whole));
  }
  return result;
}

function excludeValue(rule: FieldRule, value: unknown, whole: Document): unknown {
  if (rule.kind === "transform") return rule.transform(value, whole);
  if (rule.kind !== "node") return value;
  return mapDocuments(
    value,
    (inner) => exclude(rule, inner, whole),
    (other) => other,
  );
}
