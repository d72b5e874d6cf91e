import type { Document } from "../bson/bson-types.ts";
import { hasPlace } from "../bson/path-values.ts";
import { commandError, failedToParse, notOffered } from "../command-error.ts";
import { readFields } from "../fields.ts";
import { checkPartialFilter } from "../query/partial-filter.ts";
import { maxIndexPaths } from "./index-entries.ts";

const indexShape = {
  key: "document",
  name: "text",
  unique: "flag",
  sparse: "flag",
  expireAfterSeconds: "count",
  partialFilterExpression: "document",
} as const;

/**
 * An index of createIndexes as it is kept: defaults left out.
 * @throws CommandError 67, 197, 14, 9 as MongoDB, 238 for kinds of index that only MongoDB has.
 */
export function readIndexSpec(input: Document): Document {
  const given = readFields("an index", input, indexShape, "InvalidIndexSpecificationOption");
  const { key, name, unique, sparse, expireAfterSeconds, partialFilterExpression } = given;
  if (key === undefined || !name) throw failedToParse("An index specification requires the fields 'key' and 'name'");
  for (const [path, direction] of Object.entries(key)) checkPath(path, direction);
  const paths = Object.keys(key);
  if (paths.length === 0 || paths.length > maxIndexPaths)
    throw cannotCreate(`An index has between 1 and ${maxIndexPaths} keys`);
  const roots = new Set(paths.map((path) => path.split(".", 1)[0]));
  if (roots.size < paths.length) throw notOffered("an index of two paths below one field");
  if (expireAfterSeconds !== undefined && (paths.length > 1 || paths[0] === "_id"))
    throw cannotCreate("TTL indexes are single-field indexes, compound indexes do not support TTL");
  if (sparse && partialFilterExpression !== undefined)
    throw cannotCreate('cannot mix "partialFilterExpression" and "sparse" options');
  checkPartialFilter(partialFilterExpression ?? {});
  return {
    v: 2,
    key,
    name,
    ...(unique ? { unique } : {}),
    ...(sparse ? { sparse } : {}),
    ...(expireAfterSeconds === undefined ? {} : { expireAfterSeconds }),
    ...(partialFilterExpression === undefined ? {} : { partialFilterExpression }),
  };
}

function checkPath(path: string, direction: unknown): void {
  if (typeof direction === "string") throw notOffered(`an index of type ${direction}`);
  if (direction !== 1 && direction !== -1) throw cannotCreate("Values in the index key pattern must be 1 or -1");
  if (path === "$**") throw notOffered("a wildcard index");
  if (hasPlace(path)) throw notOffered("an index of a place in an array");
  if (path.split(".").some((part) => part === "" || part.startsWith("$")))
    throw cannotCreate("Index keys cannot contain an empty field, or one that starts with '$'.");
}

const cannotCreate = (message: string) => commandError("CannotCreateIndex", message);
