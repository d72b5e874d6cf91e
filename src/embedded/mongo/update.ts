import type { Document } from "bson";
import { cloneValue, getField, isDocument, setField, typeName } from "./bson-types.ts";
import { CommandError } from "./command-error.ts";
import { compareValues, equalValues } from "./compare.ts";
import { arrayFilterName, compileMatcher, filterEqualities, matchedPosition } from "./filter.ts";
import { isIndexPart } from "./path-values.ts";
import { runUpdatePipeline } from "./pipeline.ts";
import { badValue, conflictingUpdate, failedToParse, immutableField } from "./refusals.ts";
import { showElement, showValue } from "./show-value.ts";
import { modifierFactories, type UpdateTarget } from "./update-operators.ts";
import {
  expandPath,
  type Modifier,
  makeConflictCheck,
  modifyAt,
  type Positions,
  parsePath,
  valueAt,
} from "./update-paths.ts";

export type UpdateOptions = {
  /** The query that found the document: it says which element `$` stands for. */
  filter?: Document | undefined;
  arrayFilters?: readonly Document[] | undefined;
  /** The document is the seed of an upsert: `$setOnInsert` counts. */
  isInsert?: boolean | undefined;
};

/**
 * The document that an update makes of another: update operators, a replacement, or a pipeline. The input is not changed.
 * https://www.mongodb.com/docs/manual/reference/operator/update/
 * @throws CommandError as MongoDB: 2, 9, 14, 28, 40, 52, 56, 66.
 */
export function applyUpdate(
  document: Document,
  update: Document | readonly Document[],
  options: UpdateOptions = {},
): Document {
  if (Array.isArray(update)) {
    const result = runUpdatePipeline(update, cloneValue(document));
    // Like a replacement, what a pipeline makes takes over the _id when it has none.
    return keepId(document, result._id === undefined ? { ...result, _id: document._id } : result);
  }
  const changes = update as Document; // not an array, so the other arm of the union
  if (!isOperatorUpdate(changes)) return replace(document, changes);
  const target: UpdateTarget = { id: document._id, now: new Date() };
  const steps = parseSteps(changes, document, target, options.isInsert === true);
  const positions = makePositions(document, options, steps, changes);
  const result = cloneValue(document);
  for (const { parts, modifier } of concreteSteps(result, steps, positions)) modifyAt(result, parts, modifier);
  return keepId(document, result);
}

/** Whether the update consists of operators, and not of a document to put in place. Mixtures are refused. */
export function isOperatorUpdate(update: Document): boolean {
  const names = Object.keys(update);
  const operators = names.filter((name) => name.startsWith("$"));
  if (operators.length === 0) return false;
  const stranger = names.find((name) => !(name in modifierFactories) && name !== "$rename");
  if (stranger === undefined) return true;
  if (names[0]?.startsWith("$") === false) {
    throw new CommandError(
      52,
      "DollarPrefixedFieldName",
      `The dollar ($) prefixed field '${operators[0]}' in '${operators[0]}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.`,
    );
  }
  throw failedToParse(
    `Unknown modifier: ${stranger}. Expected a valid update modifier or pipeline-style update specified as an array`,
  );
}

function replace(document: Document, replacement: Document): Document {
  const copy = cloneValue(replacement);
  if (document._id === undefined) return copy;
  if (copy._id !== undefined && !equalValues(copy._id, document._id)) {
    throw immutableField(
      `After applying the update, the (immutable) field '_id' was found to have been altered to _id: ${showValue(copy._id)}`,
    );
  }
  const { _id, ...rest } = copy;
  return { _id: document._id, ...rest };
}

/** An update may not change the _id; one that was missing and is now set comes first. */
function keepId(before: Document, after: Document): Document {
  if (before._id === undefined && after._id === undefined) return after;
  if (before._id !== undefined && (after._id === undefined || !equalValues(before._id, after._id))) {
    throw immutableField("Performing an update on the path '_id' would modify the immutable field '_id'");
  }
  if (Object.keys(after)[0] === "_id") return after;
  const { _id, ...rest } = after;
  return { _id, ...rest };
}

type Step = { parts: string[]; modifier: Modifier };

function parseSteps(update: Document, document: Document, target: UpdateTarget, isInsert: boolean): Step[] {
  const check = makeConflictCheck((path, at) => `Updating the path '${path}' would create a conflict at '${at}'`);
  const steps = Object.keys(update).flatMap((operator) => {
    const fields: unknown = update[operator];
    if (!isDocument(fields)) {
      throw failedToParse(
        `Modifiers operate on fields but we found type ${typeName(fields)} instead. For example: {$mod: {<field>: ...}} not {${showElement(operator, fields)}}`,
      );
    }
    const parsed = Object.keys(fields).flatMap((path) =>
      operator === "$rename"
        ? renameSteps(document, path, fields[path])
        : [toStep(operator, path, fields[path], target)],
    );
    for (const { parts } of parsed) check(parts);
    return operator === "$setOnInsert" && !isInsert ? [] : parsed;
  });
  return steps.sort((a, b) => comparePaths(a.parts, b.parts));
}

function toStep(operator: string, path: string, operand: unknown, target: UpdateTarget): Step {
  const makeModifier = modifierFactories[operator];
  if (makeModifier === undefined) throw failedToParse(`Unknown modifier: ${operator}`);
  return { parts: parsePath(path), modifier: makeModifier(operand, path, target) };
}

/** `$rename` as two steps: set the new field to the old one's value, take the old one away. */
function renameSteps(document: Document, from: string, to: unknown): Step[] {
  if (typeof to !== "string") throw badValue(`The 'to' field for $rename must be a string: ${showElement(from, to)}`);
  if (from === to) throw badValue(`The source and target field for $rename must differ: ${showElement(from, to)}`);
  const source = parsePath(from);
  const destination = parsePath(to);
  for (const [role, parts] of [
    ["source", source],
    ["destination", destination],
  ] as const) {
    if (parts.some((part) => part.startsWith("$"))) {
      throw badValue(`The ${role} field for $rename may not be dynamic: ${parts.join(".")}`);
    }
    if (throughArray(document, parts)) {
      throw badValue(
        `The ${role} field cannot be an array element, '${parts.join(".")}' in doc with _id: ${showValue(document._id)}`,
      );
    }
  }
  const value = valueAt(document, source);
  const set: Modifier = { isCreating: value !== undefined, isTolerant: value === undefined, apply: () => value };
  const unset = toStep("$unset", from, "", { id: document._id, now: new Date() });
  return [{ parts: destination, modifier: set }, unset];
}

function throughArray(document: Document, parts: readonly string[]): boolean {
  return parts.some((_, at) => at > 0 && Array.isArray(valueAt(document, parts.slice(0, at))));
}

/** Fields are changed, and new ones added, in the order of their names; positions in the order of their numbers. */
function comparePaths(a: readonly string[], b: readonly string[]): number {
  for (const [at, partA] of a.entries()) {
    const partB = b[at];
    if (partB === undefined) return 1;
    if (partA === partB) continue;
    return isIndexPart(partA) && isIndexPart(partB) ? Number(partA) - Number(partB) : compareValues(partA, partB);
  }
  return a.length - b.length;
}

function concreteSteps(document: Document, steps: readonly Step[], positions: Positions): Step[] {
  if (!steps.some(({ parts }) => parts.some((part) => part.startsWith("$")))) return [...steps];
  const check = makeConflictCheck((path) => `Update created a conflict at '${path}'`);
  return steps.flatMap(({ parts, modifier }) =>
    expandPath(document, parts, positions).map((concrete) => {
      check(concrete);
      return { parts: concrete, modifier };
    }),
  );
}

function makePositions(
  document: Document,
  options: UpdateOptions,
  steps: readonly Step[],
  update: Document,
): Positions {
  const filters = compileArrayFilters(options.arrayFilters ?? []);
  const used = new Set(steps.flatMap(({ parts }) => parts.map((part) => part.slice(2, -1))));
  for (const name of filters.keys()) {
    if (!used.has(name)) {
      throw failedToParse(`The array filter for identifier '${name}' was not used in the update ${showValue(update)}`);
    }
  }
  for (const { parts } of steps) assertFiltersExist(parts, filters);
  return {
    matched: (arrayPath) =>
      options.filter === undefined || options.isInsert === true
        ? undefined
        : matchedPosition(options.filter, document, arrayPath),
    arrayFilter: (name, path) => filters.get(name) ?? missingFilter(name, path),
  };
}

function assertFiltersExist(parts: readonly string[], filters: ReadonlyMap<string, unknown>): void {
  for (const part of parts) {
    const name = part.startsWith("$[") ? part.slice(2, -1) : "";
    if (name !== "" && !filters.has(name)) missingFilter(name, parts.join("."));
  }
}

function missingFilter(name: string, path: string): never {
  throw badValue(`No array filter found for identifier '${name}' in path '${path}'`);
}

function compileArrayFilters(filters: readonly Document[]): Map<string, (element: unknown) => boolean> {
  const compiled = new Map<string, (element: unknown) => boolean>();
  for (const filter of filters) {
    const name = arrayFilterName(filter);
    if (compiled.has(name))
      throw failedToParse(`Found multiple array filters with the same top-level field name ${name}`);
    const matches = compileMatcher(filter);
    compiled.set(name, (element) => matches({ [name]: element }));
  }
  return compiled;
}

/**
 * What an upsert starts from: the equalities of its filter. For a replacement only the _id counts.
 * @throws CommandError 54 when two conditions name one path.
 */
export function upsertSeed(filter: Document): Document {
  const seed: Document = {};
  const check = makeConflictCheck((path) => path);
  for (const [path, value] of filterEqualities(filter)) {
    const parts = path.split(".");
    try {
      check(parts);
    } catch (error) {
      if (!(error instanceof CommandError) || error.code !== conflictingUpdate("").code) throw error;
      const message = `cannot infer query fields to set, path '${path}' is matched twice`;
      throw new CommandError(54, "NotSingleValueField", message);
    }
    plant(seed, parts, cloneValue(value));
  }
  return seed;
}

function plant(seed: Document, parts: readonly string[], value: unknown): void {
  const [part = "", ...rest] = parts;
  if (rest.length === 0) {
    setField(seed, part, value);
    return;
  }
  const inner = getField(seed, part);
  const next: Document = isDocument(inner) ? inner : {};
  if (next !== inner) setField(seed, part, next);
  plant(next, rest, value);
}
