import { type Document, isDocument } from "../bson/bson-types.ts";
import { hasPlace } from "../bson/path-values.ts";
import { commandError, notOffered, typeMismatch } from "../command-error.ts";
import { toNumber } from "../commands/command.ts";
import { checkPartialFilter } from "../query/partial-filter.ts";
import { maxIndexPaths } from "./index-entries.ts";

/** Options of an index that are kept, and those that are accepted and mean nothing here. */
const keptOptions = ["unique", "sparse", "expireAfterSeconds", "partialFilterExpression"] as const;
const ignoredOptions: ReadonlySet<string> = new Set(["v", "key", "name", "background"]);
const maxExpireSeconds = 2_147_483_647;

/**
 * An index of createIndexes as it is kept and listed: defaults left out, numbers plain.
 * @throws CommandError 67, 197, 14, 9 as MongoDB, 238 for kinds of index that only MongoDB has.
 */
export function readIndexSpec(input: Document): Document {
  if (!isDocument(input.key))
    throw commandError("FailedToParse", "The 'key' field is a required property of an index specification");
  if (typeof input.name !== "string" || input.name === "") {
    throw commandError("FailedToParse", "The 'name' field is a required property of an index specification");
  }
  const spec: Document = { v: 2, key: readKey(input.key), name: input.name };
  for (const option of Object.keys(input)) {
    if (ignoredOptions.has(option) || keptOptions.some((kept) => kept === option)) continue;
    throw notOffered(`the option ${option} of an index`, "InvalidIndexSpecificationOption");
  }
  for (const option of ["unique", "sparse"]) {
    const value: unknown = input[option];
    if (value === undefined) continue;
    if (typeof value !== "boolean") throw typeMismatch(`The field '${option}' must be a boolean`);
    if (value) spec[option] = true;
  }
  readExpiry(input, spec);
  readPartialFilter(input, spec);
  return spec;
}

function readKey(key: Document): Record<string, number> {
  const entries = Object.entries(key);
  if (entries.length === 0) throw cannotCreate("Index keys cannot be an empty object");
  if (entries.length > maxIndexPaths) throw cannotCreate("too many keys in the index");
  const roots = entries.map(([path]) => path.split(".", 1)[0]);
  if (new Set(roots).size < roots.length) throw notOffered("an index of two paths below one field");
  return Object.fromEntries(
    entries.map(([path, direction]) => {
      if (typeof direction === "string") throw notOffered(`an index of type ${direction}`);
      const number = toNumber(direction);
      if (number !== 1 && number !== -1) throw cannotCreate("Values in the index key pattern must be 1 or -1");
      const parts = path.split(".");
      if (parts.includes("")) throw cannotCreate("Index keys cannot contain an empty field.");
      if (hasPlace(path)) throw notOffered("an index of a place in an array");
      if (path === "$**") throw notOffered("a wildcard index");
      if (parts.some((part) => part.startsWith("$")))
        throw cannotCreate("Index key contains an illegal field name: field name starts with '$'.");
      return [path, number];
    }),
  );
}

const cannotCreate = (message: string) => commandError("CannotCreateIndex", message);

function readExpiry(input: Document, spec: Document): void {
  if (input.expireAfterSeconds === undefined) return;
  const seconds = toNumber(input.expireAfterSeconds);
  if (seconds === undefined) throw typeMismatch("TTL index 'expireAfterSeconds' option must be numeric");
  if (seconds < 0 || seconds > maxExpireSeconds)
    throw cannotCreate(`TTL index 'expireAfterSeconds' option must be within an acceptable range, not ${seconds}`);
  if (Object.keys(input.key).length > 1 || Object.hasOwn(input.key, "_id"))
    throw cannotCreate("TTL indexes are single-field indexes, compound indexes do not support TTL");
  spec.expireAfterSeconds = seconds;
}

function readPartialFilter(input: Document, spec: Document): void {
  const filter: unknown = input.partialFilterExpression;
  if (filter === undefined) return;
  if (!isDocument(filter)) throw typeMismatch("'partialFilterExpression' for an index has to be a document");
  if (spec.sparse === true) throw cannotCreate('cannot mix "partialFilterExpression" and "sparse" options');
  checkPartialFilter(filter);
  spec.partialFilterExpression = filter;
}
