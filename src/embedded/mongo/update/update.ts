import { cloneValue, type Document, getField, isDocument, setField, typeName } from "../bson/bson-types.ts";
import { compareValues } from "../bson/order.ts";
import { badValue, commandError, failedToParse, notOffered, showValue, typeMismatch } from "../command-error.ts";
import { isOperatorDocument } from "../query/filter.ts";

/** What an operator makes of a field's value (undefined: missing). Undefined as outcome leaves all as it is. */
type Modifier = (current: unknown) => unknown;

/** The modifier of one `operator: { path: operand }` for the document of that `_id`; throws for a malformed operand. */
type ModifierFactory = (operand: unknown, path: string, id: unknown) => Modifier;

/** Takes the field away. It passes over what is missing, and over a path through a scalar, where others are refused. */
const removal: Modifier = () => undefined;

/** Every update operator that this server has: what is not here is refused. Only an insert applies `$setOnInsert`. */
export const updateOperators: Readonly<Record<string, ModifierFactory>> = {
  $set: (operand) => () => operand,
  $setOnInsert: (operand) => () => operand,
  $unset: () => removal,
  $inc: inc,
  $min: (operand) => (current) => (current === undefined || compareValues(operand, current) < 0 ? operand : undefined),
  $push: push,
};

function inc(operand: unknown, path: string, id: unknown): Modifier {
  if (typeof operand !== "number")
    throw typeMismatch(`Cannot increment with non-numeric argument: {${path}: ${showValue(operand)}}`);
  return (current = 0) => {
    if (typeof current === "number") return current + operand;
    const field = `{_id: ${showValue(id)}} has the field '${path.split(".").at(-1)}'`;
    const type = `of non-numeric type ${typeName(current)}`;
    throw typeMismatch(`Cannot apply $inc to a value of non-numeric type. ${field} ${type}`);
  };
}

function push(operand: unknown, path: string, id: unknown): Modifier {
  const { items, slice } = readPush(operand);
  return (current = []) => {
    if (Array.isArray(current)) return [...current, ...items].slice(slice);
    const place = `is of type ${typeName(current)} in document {_id: ${showValue(id)}}`;
    throw badValue(`The field '${path}' must be an array but ${place}`);
  };
}

/** What goes with `$each` in a `$push`: what is not here is refused. */
export const pushClauses = ["$each", "$slice"] as const;

/** The items that `$push` appends, and where what is kept of all begins, counted from the end. @throws CommandError 2. */
function readPush(operand: unknown): { items: readonly unknown[]; slice: number } {
  if (!isDocument(operand) || !Object.keys(operand)[0]?.startsWith("$"))
    return { items: [operand], slice: Number.NEGATIVE_INFINITY };
  const unknown = Object.keys(operand).find((name) => !pushClauses.some((clause) => clause === name));
  if (unknown !== undefined) throw notOffered(`${unknown} of $push`, "BadValue");
  const { $each: items, $slice: slice = Number.NEGATIVE_INFINITY } = operand;
  if (!Array.isArray(items)) throw badValue("The argument to $each in $push must be an array");
  if (typeof slice !== "number" || Number.isNaN(slice)) throw badValue("The value for $slice must be an integer value");
  if (slice >= 0) throw notOffered("a $slice of $push that keeps the first", "BadValue");
  return { items, slice };
}

/**
 * The document that an update makes of another: update operators, or a replacement. The input is not changed.
 * `isInsert`: the document is the seed of an upsert, and `$setOnInsert` counts.
 * https://www.mongodb.com/docs/manual/reference/operator/update/
 * @throws CommandError as MongoDB: 2, 9, 14, 28, 40, 52, 56, 66.
 */
export function applyUpdate(document: Document, update: Document, options = { isInsert: false }): Document {
  const { _id } = document;
  const ofId = _id === undefined ? {} : { _id };
  const result = isOperatorUpdate(update) ? modify(document, update, options.isInsert) : { ...ofId, ...update };
  if (_id !== undefined && compareValues(_id, result._id) !== 0)
    throw commandError("ImmutableField", "the update would modify the immutable field '_id'");
  return result;
}

/** Whether the update consists of operators, and not of a document to put in place. Mixtures are refused. */
export function isOperatorUpdate(update: Document): boolean {
  const names = Object.keys(update);
  const operator = names.find((name) => name.startsWith("$"));
  if (operator === undefined) return false;
  if (operator !== names[0]) throw dollarField(operator, operator);
  const unknown = names.find((name) => !Object.hasOwn(updateOperators, name));
  if (unknown === undefined) return true;
  throw unknown.startsWith("$") ? notOffered(unknown, "FailedToParse") : failedToParse(`Unknown modifier: ${unknown}`);
}

function dollarField(name: string, path: string) {
  const message = `The dollar ($) prefixed field '${name}' in '${path}' is not allowed in an update's document.`;
  return commandError("DollarPrefixedFieldName", message);
}

function modify(document: Document, update: Document, isInsert: boolean): Document {
  const result = cloneValue(document);
  for (const { operator, parts, modifier } of parseSteps(update, document._id))
    if (isInsert || operator !== "$setOnInsert") modifyAt(result, parts, modifier);
  return result;
}

type Step = { operator: string; parts: string[]; modifier: Modifier };

/** In the order of the paths, in which MongoDB changes fields and adds new ones. @throws CommandError 40 when two conflict. */
function parseSteps(update: Document, id: unknown): Step[] {
  const steps = Object.entries(update)
    .flatMap(([operator, fields]: [string, unknown]): Step[] => {
      if (!isDocument(fields)) {
        const example = `For example: {$mod: {<field>: ...}} not {${operator}: ${showValue(fields)}}`;
        throw failedToParse(`Modifiers operate on fields but we found type ${typeName(fields)} instead. ${example}`);
      }
      return Object.keys(fields).flatMap((path) => {
        const parts = parsePath(path);
        const modifier = updateOperators[operator]?.(fields[path], path, id);
        return modifier === undefined ? [] : [{ operator, parts, modifier }];
      });
    })
    .sort((a, b) => compareValues(a.parts, b.parts));
  for (const [at, { parts }] of steps.entries()) {
    const before = steps[at - 1]?.parts; // what a path is inside of comes right before it
    if (before?.every((part, place) => part === parts[place]) !== true) continue;
    const message = `Updating the path '${parts.join(".")}' would create a conflict at '${before.join(".")}'`;
    throw commandError("ConflictingUpdateOperators", message);
  }
  return steps;
}

/** The parts of a path that stand for elements of an array, as all of them: what is not here is refused. */
export const updatePositions: ReadonlySet<string> = new Set(["$[]"]);

/** Splits an update's path and refuses what cannot be a field's name. */
function parsePath(path: string): string[] {
  const parts = path.split(".");
  if (parts.includes(""))
    throw commandError("EmptyFieldName", `The update path '${path}' contains an empty field name.`);
  const bad = parts.find((part, at) => part.startsWith("$") && (at === 0 || !updatePositions.has(part)));
  if (bad === "$" || bad?.startsWith("$[") === true) throw notOffered(`the position ${bad} in an update`, "BadValue");
  if (bad !== undefined) throw dollarField(bad, path);
  return parts;
}

/** Applies a modifier at a path of a document that this update owns. Only `$[]` leads through an array. */
function modifyAt(document: Document, parts: readonly string[], modifier: Modifier): void {
  const [part = "", ...rest] = parts;
  const value = getField(document, part);
  if (rest.length === 0) {
    const next = modifier(value);
    if (modifier === removal) delete document[part];
    else if (next !== undefined) setField(document, part, next);
  } else if (rest[0] !== undefined && updatePositions.has(rest[0])) {
    for (const element of elementsOf(part, value)) enter(part, element, rest.slice(1), modifier);
  } else if (value !== undefined) {
    enter(part, value, rest, modifier);
  } else if (modifier !== removal) {
    setField(document, part, nest(rest, modifier(undefined)));
  }
}

function enter(name: string, value: unknown, rest: readonly string[], modifier: Modifier): void {
  if (isDocument(value) && rest.length > 0) modifyAt(value, rest, modifier);
  else if (Array.isArray(value) || rest.length === 0) throw notOffered("an update inside an array", "BadValue");
  else if (modifier !== removal)
    throw commandError("PathNotViable", `Cannot create field '${rest[0]}' in element {${name}: ${showValue(value)}}`);
}

function elementsOf(name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw badValue(
    value === undefined
      ? `The path '${name}' must exist in the document in order to apply array updates.`
      : `Cannot apply array updates to non-array element ${name}: ${showValue(value)}`,
  );
}

function nest(parts: readonly string[], value: unknown): unknown {
  return parts.reduceRight((inner: unknown, part) => {
    const outer: Document = {};
    setField(outer, part, inner);
    return outer;
  }, value);
}

/** What an upsert starts from: the equalities of its filter. @throws CommandError 238 for `$and`, `$or` and nested fields. */
export function upsertSeed(filter: Document): Document {
  const seed: Document = {};
  for (const [path, condition] of Object.entries(filter)) {
    if (path.startsWith("$")) throw notOffered(`an upsert by ${path}`);
    const values: unknown = isOperatorDocument(condition) ? condition.$in : [condition];
    if (!Array.isArray(values) || values.length !== 1) continue;
    if (path.includes(".")) throw notOffered("an upsert by a nested field");
    setField(seed, path, values[0]);
  }
  return seed;
}
