import { type Document, getField, isDocument } from "./bson-types.ts";

/** Whether a part of the path can name an element of an array by its place: filters alone may have one. */
export function hasPlace(path: string): boolean {
  return path.split(".").some((part) => /^\d+$/.test(part));
}

/** The field of a document that the path begins with. */
export function rootOf(path: string): string {
  const dot = path.indexOf(".");
  return dot < 0 ? path : path.slice(0, dot);
}

/**
 * Visits what a query path means in a document until `visit` answers true, and says whether it did. Arrays on the way are
 * entered element by element (and by position where the part is a number); an array at the end is visited element by
 * element and then as a whole, or, with `wholeLeaf`, only as a whole. A missing field is visited as undefined; an array
 * without documents leads nowhere.
 */
export function someAtPath(
  container: unknown,
  parts: readonly string[],
  visit: (value: unknown) => boolean,
  wholeLeaf: boolean,
  at = 0,
): boolean {
  const part = parts[at];
  if (part === undefined) {
    if (!Array.isArray(container) || wholeLeaf) return visit(container);
    return container.some(visit) || visit(container);
  }
  if (Array.isArray(container)) {
    return container.some((item: unknown, index) => {
      if (isDocument(item) && someAtPath(item, parts, visit, wholeLeaf, at)) return true;
      if (part !== String(index)) return false;
      // A position at the end of the path is the element itself, not what is inside it.
      if (at === parts.length - 1) return visit(item);
      return (isDocument(item) || Array.isArray(item)) && someAtPath(item, parts, visit, wholeLeaf, at + 1);
    });
  }
  const value = isDocument(container) ? getField(container, part) : undefined;
  return someAtPath(value, parts, visit, wholeLeaf, at + 1);
}

/**
 * The values under which an index on `path` files a document: one for each element where the path ends in or passes
 * an array, `[undefined]` where nothing is there, and an empty array at the end as itself (it sorts before null).
 */
export function valuesAt(document: Document, path: string): readonly unknown[] {
  const values = collect(document, path.split("."), 0);
  return values.length === 0 ? [undefined] : values;
}

function collect(container: unknown, parts: readonly string[], at: number): readonly unknown[] {
  const part = parts[at];
  if (part === undefined) return Array.isArray(container) && container.length > 0 ? container : [container];
  if (!Array.isArray(container))
    return collect(isDocument(container) ? getField(container, part) : undefined, parts, at + 1);
  return container.flatMap((item: unknown) => (isDocument(item) ? collect(item, parts, at) : [undefined]));
}
