import type { Document } from "bson";
import { bsonTag, getField, isDocument, setField, typeName } from "./bson-types.ts";
import { commandError } from "./command-error.ts";
import { sortComparator } from "./compare.ts";
import { compileExpression } from "./expression.ts";
import { rootContext } from "./expression-arguments.ts";
import { compileFilter } from "./filter.ts";
import { isOperatorDocument } from "./filter-operators.ts";
import { makeInteger, toSafeInteger } from "./numbers.ts";
import { mapping, outerOf, type PipelineContext, type Stage, variableNames } from "./pipeline-stage.ts";
import { addComputed, compileProjectStage } from "./projection.ts";
import { addRule, newNode, type ProjectionNode } from "./projection-tree.ts";
import { located } from "./refusals.ts";
import { keepScore, scoreOf } from "./search-score.ts";
import { showValue } from "./show-value.ts";

/** The stages that filter, order and reshape single documents; undefined for another stage's name. */
export function compileShapingStage(name: string, operand: unknown, context: PipelineContext): Stage | undefined {
  switch (name) {
    case "$match":
      return match(operand, context);
    case "$project":
      return project(operand, context);
    case "$set":
    case "$addFields":
      return addFields(name, operand, context);
    case "$unset":
      return unset(operand);
    case "$sort":
      return sort(operand);
    case "$limit":
      return limit(operand);
    case "$skip":
      return skip(operand);
    case "$sample":
      return sample(operand);
    case "$unwind":
      return unwind(operand);
    case "$replaceRoot":
      return replaceRoot(operand, context);
    case "$replaceWith":
      return replaceWith(operand, context, "'replacement document'");
    default:
      return undefined;
  }
}

function match(operand: unknown, context: PipelineContext): Stage {
  if (!isDocument(operand)) throw located(15959, "the match filter must be an expression in an object");
  const matches = compileFilter(operand, outerOf(context));
  return function* (documents) {
    for (const document of documents) if (matches(document)) yield document;
  };
}

function project(operand: unknown, context: PipelineContext): Stage {
  if (!isDocument(operand)) throw located(15969, "$project specification must be an object");
  const projection = compileProjectStage(operand, variableNames(context));
  const outer = outerOf(context);
  return mapping((document) => projection(document, outer));
}

function addFields(name: string, operand: unknown, context: PipelineContext): Stage {
  if (!isDocument(operand)) {
    throw located(40272, `${name} specification stage must be an object, got ${typeName(operand)}`);
  }
  const root = newNode();
  fileFields(root, operand, "", variableNames(context));
  const outer = outerOf(context);
  return mapping((document) => keepScore(document, addComputed(root, document, rootContext(document, outer))));
}

/** A nested document names nested fields: `{ a: { b: 1 } }` sets `a.b` and leaves the rest of `a`. */
function fileFields(root: ProjectionNode, fields: Document, prefix: string, variables: readonly string[]): void {
  for (const name of Object.keys(fields)) {
    const value: unknown = fields[name];
    const path = `${prefix}${name}`;
    if (name.startsWith("$"))
      throw located(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    const isNested = isDocument(value) && bsonTag(value) === undefined && !isOperatorDocument(value);
    if (isNested && Object.keys(value).length > 0) fileFields(root, value, `${path}.`, variables);
    else addRule(root, path, { kind: "compute", expression: compileExpression(value, variables) });
  }
}

function unset(operand: unknown): Stage {
  const paths: readonly unknown[] = Array.isArray(operand) ? operand : [operand];
  if (paths.length === 0)
    throw located(31119, "$unset specification must be a string or an array with at least one field");
  const projection: Document = {};
  for (const path of paths) {
    if (typeof path !== "string")
      throw located(31120, "$unset specification must be a string or an array containing only string values");
    projection[path] = 0;
  }
  const drop = compileProjectStage(projection, []);
  return mapping((document) => drop(document));
}

function sort(operand: unknown): Stage {
  if (!isDocument(operand)) throw located(15973, "the $sort key specification must be an object");
  if (Object.keys(operand).length === 0) throw located(15976, "$sort stage must have at least one sort key");
  const compare = scoreAwareComparator(operand);
  return (documents) => [...documents].sort(compare);
}

/** `{ field: { $meta: "…" } }` orders by that score, the best first; the other fields as usual. */
export function scoreAwareComparator(specification: Document): (a: Document, b: Document) => number {
  const parts = Object.keys(specification).map((name) => {
    const order: unknown = specification[name];
    if (!isDocument(order) || typeof order.$meta !== "string") return sortComparator({ [name]: order });
    const title: string = order.$meta;
    return (a: Document, b: Document) => (scoreOf(b, title) ?? 0) - (scoreOf(a, title) ?? 0);
  });
  return (a, b) => {
    for (const part of parts) {
      const order = part(a, b);
      if (order !== 0) return order;
    }
    return 0;
  };
}

function limit(operand: unknown): Stage {
  const count = toSafeInteger(operand);
  if (count === undefined)
    throw located(5107201, `invalid argument to $limit stage: Expected a number in: $limit: ${showValue(operand)}`);
  if (count < 0)
    throw located(5107201, `invalid argument to $limit stage: Expected a non-negative number in: $limit: ${count}`);
  if (count === 0) throw located(15958, "the limit must be positive");
  return function* (documents) {
    let taken = 0;
    for (const document of documents) {
      yield document;
      taken += 1;
      if (taken >= count) return;
    }
  };
}

function skip(operand: unknown): Stage {
  const count = toSafeInteger(operand);
  if (count === undefined || count < 0) {
    throw located(
      5107200,
      `invalid argument to $skip stage: Expected a non-negative number in: $skip: ${showValue(operand)}`,
    );
  }
  return function* (documents) {
    let passed = 0;
    for (const document of documents) {
      passed += 1;
      if (passed > count) yield document;
    }
  };
}

function sample(operand: unknown): Stage {
  const size = isDocument(operand) ? toSafeInteger(operand.size) : undefined;
  if (!isDocument(operand)) throw located(28745, "the $sample stage specification must be an object");
  if (size === undefined) throw located(28746, "size argument to $sample must be a number");
  if (size <= 0) throw located(28747, "size argument to $sample must be a positive integer");
  return (documents) => {
    const pool = [...documents];
    const count = Math.min(size, pool.length);
    for (let at = 0; at < count; at += 1) {
      const other = at + Math.floor(Math.random() * (pool.length - at));
      const chosen = pool[other] ?? {};
      pool[other] = pool[at] ?? {};
      pool[at] = chosen;
    }
    return pool.slice(0, count);
  };
}

type UnwindOptions = { path: string[]; indexField: string | undefined; isPreserving: boolean };

function unwind(operand: unknown): Stage {
  const options = unwindOptions(operand);
  return function* (documents) {
    for (const document of documents) yield* unwound(document, options);
  };
}

function unwindOptions(operand: unknown): UnwindOptions {
  const fields: Document = isDocument(operand) ? operand : { path: operand };
  const known = ["path", "includeArrayIndex", "preserveNullAndEmptyArrays"];
  const stranger = Object.keys(fields).find((name) => !known.includes(name));
  if (stranger !== undefined) throw located(28811, `unrecognized option to $unwind stage: ${stranger}`);
  const { path, includeArrayIndex, preserveNullAndEmptyArrays = false } = fields;
  if (path === undefined) throw located(28812, "no path specified to $unwind stage");
  if (typeof path !== "string")
    throw located(28808, `expected a string as the path for $unwind stage, got ${typeName(path)}`);
  if (!path.startsWith("$"))
    throw located(28818, `path option to $unwind stage should be prefixed with a '$': ${path}`);
  if (typeof preserveNullAndEmptyArrays !== "boolean") {
    throw located(28809, "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage");
  }
  if (includeArrayIndex !== undefined && (typeof includeArrayIndex !== "string" || includeArrayIndex === "")) {
    throw located(28810, "expected a non-empty string for the includeArrayIndex option to $unwind stage");
  }
  if (typeof includeArrayIndex === "string" && includeArrayIndex.startsWith("$")) {
    throw located(
      28822,
      `includeArrayIndex option to $unwind stage should not be prefixed with a '$': ${includeArrayIndex}`,
    );
  }
  return { path: path.slice(1).split("."), indexField: includeArrayIndex, isPreserving: preserveNullAndEmptyArrays };
}

function* unwound(document: Document, { path, indexField, isPreserving }: UnwindOptions): Iterable<Document> {
  const withIndex = (result: Document, index: unknown) =>
    keepScore(document, indexField === undefined ? result : withPath(result, indexField.split("."), index));
  const value = documentPath(document, path);
  if (Array.isArray(value) && value.length > 0) {
    for (const [index, item] of value.entries()) yield withIndex(withPath(document, path, item), makeInteger(index));
    return;
  }
  if (!Array.isArray(value) && value !== null && value !== undefined) {
    yield withIndex(document, null);
    return;
  }
  if (!isPreserving) return;
  yield withIndex(Array.isArray(value) ? withPath(document, path, undefined) : document, null);
}

/** A nested field reached through documents alone. */
function documentPath(document: Document, path: readonly string[]): unknown {
  let value: unknown = document;
  for (const part of path) value = isDocument(value) ? getField(value, part) : undefined;
  return value;
}

/** A copy in which the field at the path has the value, or is gone when that is undefined. */
function withPath(document: Document, path: readonly string[], value: unknown): Document {
  const [part = "", ...rest] = path;
  const copy: Document = { ...document };
  const inner: unknown = copy[part];
  const next = rest.length === 0 ? value : withPath(isDocument(inner) ? inner : {}, rest, value);
  if (next === undefined) delete copy[part];
  else setField(copy, part, next);
  return copy;
}

function replaceRoot(operand: unknown, context: PipelineContext): Stage {
  if (!isDocument(operand))
    throw located(40229, `expected an object as specification for $replaceRoot stage, got ${typeName(operand)}`);
  if (!("newRoot" in operand)) throw located(40231, "no newRoot specified for the $replaceRoot stage");
  const stranger = Object.keys(operand).find((name) => name !== "newRoot");
  if (stranger !== undefined)
    throw commandError("Location40415", `BSON field '$replaceRoot.${stranger}' is an unknown field.`);
  return replaceWith(operand.newRoot, context, "'newRoot'");
}

function replaceWith(operand: unknown, context: PipelineContext, what: string): Stage {
  const expression = compileExpression(operand, variableNames(context));
  const outer = outerOf(context);
  return mapping((document) => {
    const root = expression(rootContext(document, outer));
    if (isDocument(root)) return keepScore(document, { ...root });
    throw located(
      40228,
      `${what} expression must evaluate to an object, but resulting value was: ${showValue(root)}. Type of resulting value: '${typeName(root)}'.`,
    );
  });
}
