import type { Document } from "../bson/bson-types.ts";
import { valuesAt } from "../bson/path-values.ts";
import { commandError } from "../command-error.ts";
import type { Index } from "./collection.ts";
import { encodeKey } from "./index-keys.ts";

/** What of an index its keys depend on. */
export type KeyShape = Pick<Index, "paths" | "isDescending" | "isSparse" | "covers">;

export type IndexEntries = { keys: Buffer[]; multikey: number };

/** Bits of `multikey` are kept for this many paths; MongoDB allows 32 in one index. */
export const maxIndexPaths = 31;

const none: IndexEntries = { keys: [], multikey: 0 };

/**
 * The keys under which an index files a document: none when it is not in a sparse or partial index, several when a
 * path meets an array.
 * @throws CommandError 171 when two of the paths meet different arrays.
 */
export function indexEntries(shape: KeyShape, document: Document): IndexEntries {
  if (shape.covers !== undefined && !shape.covers(document)) return none;
  const single = singleKey(shape, document);
  return single ?? severalKeys(shape, document);
}

/** The usual case: no path is dotted and none meets an array. */
function singleKey(shape: KeyShape, document: Document): IndexEntries | undefined {
  const values: unknown[] = [];
  let isPresent = false;
  for (const path of shape.paths) {
    if (path.includes(".")) return undefined;
    const value: unknown = Object.hasOwn(document, path) ? document[path] : undefined;
    if (Array.isArray(value)) return undefined;
    if (value !== undefined) isPresent = true;
    values.push(value);
  }
  if (shape.isSparse && !isPresent) return none;
  return { keys: [encodeKey(values, shape.isDescending)], multikey: 0 };
}

function severalKeys(shape: KeyShape, document: Document): IndexEntries {
  const roots = arrayRoots(shape, document);
  if (roots.length > 1) {
    throw commandError("CannotIndexParallelArrays", `cannot index parallel arrays [${roots[1]}] [${roots[0]}]`);
  }
  const keys = new Map<string, Buffer>();
  const mask = { multikey: 0 };
  addKeys(shape, document, keys, mask);
  return { keys: [...keys.values()], multikey: mask.multikey };
}

function arrayRoots(shape: KeyShape, document: Document): string[] {
  const roots = new Set<string>();
  for (const path of shape.paths) {
    const root = path.split(".", 1)[0] ?? path;
    if (Object.hasOwn(document, root) && Array.isArray(document[root])) roots.add(root);
  }
  return [...roots];
}

function addKeys(shape: KeyShape, document: Document, keys: Map<string, Buffer>, mask: { multikey: number }): void {
  const valuesOfPaths = shape.paths.map((path) => valuesAt(document, path));
  if (shape.isSparse && valuesOfPaths.every((values) => values.every((value) => value === undefined))) return;
  valuesOfPaths.forEach((values, place) => {
    if (values.length > 1) mask.multikey |= 1 << place;
  });
  for (const values of product(valuesOfPaths)) {
    const key = encodeKey(values, shape.isDescending);
    keys.set(key.toString("latin1"), key);
  }
}

function product(lists: readonly unknown[][]): unknown[][] {
  return lists.reduce<unknown[][]>((rows, list) => rows.flatMap((row) => list.map((value) => [...row, value])), [[]]);
}
