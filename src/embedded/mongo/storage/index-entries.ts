import { type Document, getField } from "../bson/bson-types.ts";
import { encodeKey } from "../bson/index-keys.ts";
import { valuesAt } from "../bson/path-values.ts";
import { commandError } from "../command-error.ts";
import type { Index } from "./collection.ts";

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
    const value = getField(document, path);
    if (Array.isArray(value)) return undefined;
    if (value !== undefined) isPresent = true;
    values.push(value);
  }
  if (shape.isSparse && !isPresent) return none;
  return { keys: [encodeKey(values, shape.isDescending)], multikey: 0 };
}

function severalKeys(shape: KeyShape, document: Document): IndexEntries {
  const arrays = shape.paths.filter((path) => Array.isArray(getField(document, path.split(".", 1)[0] ?? path)));
  if (arrays.length > 1) {
    throw commandError("CannotIndexParallelArrays", `cannot index parallel arrays [${arrays[1]}] [${arrays[0]}]`);
  }
  const valuesOfPaths = shape.paths.map((path) => valuesAt(document, path));
  if (shape.isSparse && valuesOfPaths.flat().every((value) => value === undefined)) return none;
  let multikey = 0;
  let rows: unknown[][] = [[]];
  for (const [place, values] of valuesOfPaths.entries()) {
    if (values.length > 1) multikey |= 1 << place;
    rows = rows.flatMap((row) => values.map((value) => [...row, value]));
  }
  const keys = rows.map((values) => encodeKey(values, shape.isDescending));
  return { keys: [...new Map(keys.map((key) => [key.toString("latin1"), key])).values()], multikey };
}
