import { type Document, isDocument } from "./bson/bson-types.ts";
import { commandError, type ErrorName, notOffered, typeMismatch } from "./command-error.ts";

/** What a field of a command, a statement, a stage or a definition may hold. */
type Kinds = {
  text: string;
  count: number;
  flag: boolean;
  document: Document;
  documents: Document[];
  array: unknown[];
  any: unknown;
};
export type Shape = Readonly<Record<string, keyof Kinds>>;
export type Fields<S extends Shape> = { readonly [Name in keyof S]: Kinds[S[Name]] | undefined };

const tests: Readonly<Record<keyof Kinds, (value: unknown) => boolean>> = {
  text: (value) => typeof value === "string",
  count: (value) => typeof value === "number",
  flag: (value) => typeof value === "boolean",
  document: isDocument,
  documents: (value) => Array.isArray(value) && value.every(isDocument),
  array: Array.isArray,
  any: () => true,
};

/**
 * The fields of `given`, which may have those of the shape and no others; null counts as absent. A count is cut to a whole
 * number. `owner` is whose fields they are, for the messages; `unknown` is MongoDB's error for a name that it does not know.
 * @throws CommandError 14 for a value of another kind, 2 for a negative count, `unknown` for another field.
 */
export function readFields<S extends Shape>(
  owner: string,
  given: Document,
  shape: S,
  unknown: ErrorName | number = 40415,
): Fields<S> {
  const fields: Document = {};
  for (const name of Object.keys(given)) {
    const kind = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (kind === undefined) throw notOffered(`the option ${name} of ${owner}`, unknown);
    const value: unknown = given[name];
    if (value === null || value === undefined) continue;
    if (!tests[kind](value)) throw typeMismatch(`BSON field '${owner}.${name}' is the wrong type, expected a ${kind}`);
    fields[name] = kind === "count" ? toCount(name, value) : value;
  }
  return fields as Fields<S>; // each was tested
}

function toCount(name: string, value: unknown): number {
  const count = Math.trunc(Number(value));
  if (count >= 0) return count;
  throw commandError("BadValue", `BSON field '${name}' value must be >= 0, actual value '${value}'`);
}
