import { type Document, getField, isDocument, setField } from "../bson/bson-types.ts";
import { badValue, commandError, notOffered, pathNotViable, showValue } from "../command-error.ts";

/** The outcome of a modifier that takes the field away. */
export const removed: unique symbol = Symbol("removed");

/** What a modifier makes of a field's value (undefined: missing). Undefined as outcome leaves all as it is. */
export type Modifier = {
  /** Whether a missing field is created; without it the modifier leaves missing fields alone. */
  isCreating: boolean;
  /** Whether a path through a scalar is passed over, as `$unset` does, instead of refused. */
  isTolerant?: boolean;
  apply(current: unknown): unknown;
};

/** The parts of a path that stand for elements of an array, as all of them: what is not here is refused. */
export const updatePositions: ReadonlySet<string> = new Set(["$[]"]);

/** Splits an update's path and refuses what cannot be a field's name. */
export function parsePath(path: string): string[] {
  const parts = path.split(".");
  if (path === "") throw commandError("EmptyFieldName", "An empty update path is not valid.");
  if (parts.includes("")) {
    const message = `The update path '${path}' contains an empty field name, which is not allowed.`;
    throw commandError("EmptyFieldName", message);
  }
  const bad = parts.find((part, at) => part.startsWith("$") && (at === 0 || !updatePositions.has(part)));
  if (bad === "$" || bad?.startsWith("$[") === true) throw notOffered(`the position ${bad} in an update`, "BadValue");
  if (bad !== undefined) {
    const message = `The dollar ($) prefixed field '${bad}' in '${path}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.`;
    throw commandError("DollarPrefixedFieldName", message);
  }
  return parts;
}

/** Refuses paths of which one is, or is inside, another. */
export function makeConflictCheck(): (parts: readonly string[]) => void {
  const taken = new Set<string>();
  const prefixes = new Set<string>();
  return (parts) => {
    const path = parts.join(".");
    const refuse = (at: string) =>
      commandError("ConflictingUpdateOperators", `Updating the path '${path}' would create a conflict at '${at}'`);
    if (taken.has(path) || prefixes.has(path)) throw refuse(path);
    for (let length = 1; length < parts.length; length += 1) {
      const prefix = parts.slice(0, length).join(".");
      if (taken.has(prefix)) throw refuse(prefix);
      prefixes.add(prefix);
    }
    taken.add(path);
  };
}

/** Applies a modifier at a path of a document that this update owns. Only `$[]` leads through an array. */
export function modifyAt(document: Document, parts: readonly string[], modifier: Modifier): void {
  const [part = "", ...rest] = parts;
  const value = getField(document, part);
  if (rest.length === 0) {
    write(document, part, modifier.apply(value));
  } else if (rest[0] !== undefined && updatePositions.has(rest[0])) {
    for (const element of elementsOf(part, value)) enter(part, element, rest.slice(1), modifier);
  } else if (value !== undefined) {
    enter(part, value, rest, modifier);
  } else if (modifier.isCreating) {
    write(document, part, nest(rest, modifier.apply(undefined)));
  }
}

function enter(name: string, value: unknown, rest: readonly string[], modifier: Modifier): void {
  if (isDocument(value) && rest.length > 0) modifyAt(value, rest, modifier);
  else if (Array.isArray(value) || rest.length === 0) throw notOffered("an update inside an array", "BadValue");
  else if (modifier.isTolerant !== true)
    throw pathNotViable(`Cannot create field '${rest[0]}' in element {${name}: ${showValue(value)}}`);
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

function write(container: Document, part: string, value: unknown): void {
  if (value === removed) delete container[part];
  else if (value !== undefined) setField(container, part, value);
}
