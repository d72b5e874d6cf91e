import { isDocument } from "./bson-types.ts";
import type { Document } from "./codec.ts";
import { toNumber } from "./command.ts";
import { commandError, notOffered } from "./command-error.ts";
import { compileFilter } from "./filter.ts";
import { isOperatorDocument } from "./filter-operators.ts";
import { maxIndexPaths } from "./index-entries.ts";
import { typeMismatch } from "./refusals.ts";

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
    if (typeof value !== "boolean" && toNumber(value) === undefined) {
      throw typeMismatch(`The field '${option}' has value ${String(value)}, which is not convertible to bool`);
    }
    if (value !== false && toNumber(value) !== 0) spec[option] = true;
  }
  readExpiry(input, spec);
  readPartialFilter(input, spec);
  return spec;
}

function readKey(key: Document): Record<string, number> {
  const entries = Object.entries(key);
  if (entries.length === 0) throw commandError("CannotCreateIndex", "Index keys cannot be an empty object");
  if (entries.length > maxIndexPaths) throw commandError("CannotCreateIndex", "too many keys in the index");
  return Object.fromEntries(
    entries.map(([path, direction]) => {
      if (typeof direction === "string") throw notOffered(`an index of type ${direction}`);
      const number = toNumber(direction);
      if (number === undefined || number === 0 || Number.isNaN(number)) {
        throw commandError(
          "CannotCreateIndex",
          "Values in the index key pattern must be numbers other than 0, or strings",
        );
      }
      if (path === "" || path.split(".").includes(""))
        throw commandError("CannotCreateIndex", "Index keys cannot contain an empty field.");
      if (path.split(".").some((part) => part.startsWith("$"))) {
        if (path === "$**") throw notOffered("a wildcard index");
        throw commandError(
          "CannotCreateIndex",
          "Index key contains an illegal field name: field name starts with '$'.",
        );
      }
      return [path, number];
    }),
  );
}

function readExpiry(input: Document, spec: Document): void {
  if (input.expireAfterSeconds === undefined) return;
  const seconds = toNumber(input.expireAfterSeconds);
  if (seconds === undefined) throw typeMismatch("TTL index 'expireAfterSeconds' option must be numeric");
  if (seconds < 0 || seconds > maxExpireSeconds) {
    throw commandError(
      "CannotCreateIndex",
      `TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number than ${seconds}`,
    );
  }
  if (Object.keys(input.key).length > 1) {
    throw commandError(
      "CannotCreateIndex",
      "TTL indexes are single-field indexes, compound indexes do not support TTL",
    );
  }
  if (Object.hasOwn(input.key, "_id"))
    throw commandError(
      "InvalidIndexSpecificationOption",
      "The field 'expireAfterSeconds' is not valid for an _id index specification",
    );
  spec.expireAfterSeconds = seconds;
}

function readPartialFilter(input: Document, spec: Document): void {
  const filter: unknown = input.partialFilterExpression;
  if (filter === undefined) return;
  if (!isDocument(filter)) throw typeMismatch("'partialFilterExpression' for an index has to be a document");
  if (spec.sparse === true)
    throw commandError("CannotCreateIndex", 'cannot mix "partialFilterExpression" and "sparse" options');
  checkPartial(filter);
  compileFilter(filter);
  spec.partialFilterExpression = filter;
}

const partialOperators: ReadonlySet<string> = new Set(["$in", "$gt", "$gte", "$lt", "$lte", "$exists"]);

function checkPartial(filter: Document): void {
  for (const [name, condition] of Object.entries(filter)) {
    if ((name === "$and" || name === "$or") && Array.isArray(condition)) {
      for (const part of condition) if (isDocument(part)) checkPartial(part);
      continue;
    }
    const operators = name.startsWith("$") ? [name] : isOperatorDocument(condition) ? Object.keys(condition) : [];
    const refused = operators.find((operator) => !partialOperators.has(operator));
    if (refused !== undefined || (isOperatorDocument(condition) && condition.$exists === false)) {
      throw commandError(
        "CannotCreateIndex",
        `unsupported expression in partial index: ${refused ?? "$exists: false"}`,
      );
    }
  }
}
