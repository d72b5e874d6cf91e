import type { Document } from "bson";
import { getField, isDocument, setField } from "./bson-types.ts";
import { CommandError, notOffered } from "./command-error.ts";
import { isIndexPart } from "./path-values.ts";
import { conflictingUpdate, located, pathNotViable } from "./refusals.ts";
import { showElement } from "./show-value.ts";

/** How many nulls an update may write to reach an array position beyond the end, as MongoDB. */
const MAX_BACKFILL = 1_500_000;

/** The outcome of a modifier that takes the field away. */
export const removed: unique symbol = Symbol("removed");

/** What a modifier makes of a field's value (undefined: missing). Undefined as outcome leaves all as it is. */
export type Modifier = {
  /** Whether a missing field is created; without it the modifier leaves missing fields alone. */
  isCreating: boolean;
  /** Whether a path through a scalar is passed over, as `$unset` does, instead of refused. */
  isTolerant?: boolean;
  apply(current: unknown, path: string): unknown;
};

/** Splits an update's path and refuses what cannot be a field's name. */
export function parsePath(path: string): string[] {
  const parts = path.split(".");
  if (path === "") throw new CommandError(56, "EmptyFieldName", "An empty update path is not valid.");
  if (parts.includes("")) {
    const message = `The update path '${path}' contains an empty field name, which is not allowed.`;
    throw new CommandError(56, "EmptyFieldName", message);
  }
  const bad = parts.find((part) => part.startsWith("$"));
  if (bad === "$" || bad?.startsWith("$[") === true) throw notOffered(`the position ${bad} in an update`, "BadValue");
  if (bad !== undefined) {
    const message = `The dollar ($) prefixed field '${bad}' in '${path}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.`;
    throw new CommandError(52, "DollarPrefixedFieldName", message);
  }
  return parts;
}

/** Tells paths of which one is, or is inside, another. */
export function makeConflictCheck(describe: (path: string, at: string) => string): (parts: readonly string[]) => void {
  const taken = new Set<string>();
  const prefixes = new Set<string>();
  return (parts) => {
    const path = parts.join(".");
    const refuse = (at: string) => conflictingUpdate(describe(path, at));
    if (taken.has(path) || prefixes.has(path)) throw refuse(path);
    for (let length = 1; length < parts.length; length += 1) {
      const prefix = parts.slice(0, length).join(".");
      if (taken.has(prefix)) throw refuse(prefix);
      prefixes.add(prefix);
    }
    taken.add(path);
  };
}

/** Applies a modifier at a path of a document that this update owns. */
export function modifyAt(document: Document, parts: readonly string[], modifier: Modifier): void {
  const path = parts.join(".");
  let container: Document | unknown[] = document;
  for (const [at, part] of parts.entries()) {
    const value = readPart(container, part);
    const isBlocked =
      value !== notTraversable &&
      value !== undefined &&
      at < parts.length - 1 &&
      !Array.isArray(value) &&
      !isDocument(value);
    if (value === notTraversable || isBlocked) {
      refuseTraversal(modifier, parts, isBlocked ? at + 1 : at, isBlocked ? value : container);
      return;
    }
    if (at === parts.length - 1) {
      writePart(container, part, modifier.apply(value, path));
      return;
    }
    if (value === undefined) {
      if (modifier.isCreating) writePart(container, part, nest(parts.slice(at + 1), modifier.apply(undefined, path)));
      return;
    }
    container = value as Document | unknown[]; // anything else was refused above
  }
}

const notTraversable = Symbol("not traversable");

function readPart(container: Document | unknown[], part: string): unknown {
  if (!Array.isArray(container)) return getField(container, part);
  return isIndexPart(part) ? container[Number(part)] : notTraversable;
}

function refuseTraversal(modifier: Modifier, parts: readonly string[], at: number, blocking: unknown): void {
  if (modifier.isTolerant === true) return;
  const element = showElement(parts[at - 1] ?? "", blocking);
  const part = parts[at] ?? "";
  if (modifier.isCreating) throw pathNotViable(`Cannot create field '${part}' in element {${element}}`);
  throw pathNotViable(`Cannot use the part (${part}) of (${parts.join(".")}) to traverse the element ({${element}})`);
}

function nest(parts: readonly string[], value: unknown): unknown {
  return parts.reduceRight((inner: unknown, part) => {
    const outer: Document = {};
    setField(outer, part, inner);
    return outer;
  }, value);
}

function writePart(container: Document | unknown[], part: string, value: unknown): void {
  if (value === undefined) return;
  if (!Array.isArray(container)) {
    if (value === removed) delete container[part];
    else setField(container, part, value);
    return;
  }
  const index = Number(part);
  if (value === removed) {
    if (index < container.length) container[index] = null;
    return;
  }
  if (index - container.length > MAX_BACKFILL)
    throw located(15891, "can't backfill array to larger than 1500000 elements");
  while (container.length < index) container.push(null);
  container[index] = value;
}
