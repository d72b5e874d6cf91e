import { cloneValue, type Document, isDocument, setField, typeName } from "../bson/bson-types.ts";
import { compareValues } from "../bson/order.ts";
import { commandError, failedToParse, immutableField, notOffered, showValue } from "../command-error.ts";
import { filterEqualities } from "../query/filter.ts";
import { updateOperators } from "./update-operators.ts";
import { type Modifier, makeConflictCheck, modifyAt, parsePath } from "./update-paths.ts";

/**
 * The document that an update makes of another: update operators, or a replacement. The input is not changed.
 * `isInsert`: the document is the seed of an upsert, and `$setOnInsert` counts.
 * https://www.mongodb.com/docs/manual/reference/operator/update/
 * @throws CommandError as MongoDB: 2, 9, 14, 28, 40, 52, 56, 66.
 */
export function applyUpdate(document: Document, update: Document, options = { isInsert: false }): Document {
  if (!isOperatorUpdate(update)) return replace(document, update);
  const result = cloneValue(document);
  for (const { parts, modifier } of parseSteps(update, document._id, options.isInsert)) {
    modifyAt(result, parts, modifier);
  }
  return keepId(document, result);
}

/** Whether the update consists of operators, and not of a document to put in place. Mixtures are refused. */
export function isOperatorUpdate(update: Document): boolean {
  const names = Object.keys(update);
  const operators = names.filter((name) => name.startsWith("$"));
  if (operators.length === 0) return false;
  if (names[0]?.startsWith("$") === false) {
    throw commandError(
      "DollarPrefixedFieldName",
      `The dollar ($) prefixed field '${operators[0]}' in '${operators[0]}' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.`,
    );
  }
  const stranger = names.find((name) => !Object.hasOwn(updateOperators, name));
  if (stranger === undefined) return true;
  throw stranger.startsWith("$")
    ? notOffered(stranger, "FailedToParse")
    : failedToParse(`Unknown modifier: ${stranger}`);
}

function replace(document: Document, replacement: Document): Document {
  const copy = cloneValue(replacement);
  if (document._id === undefined) return copy;
  if (copy._id !== undefined && compareValues(copy._id, document._id) !== 0) {
    throw immutableField(
      `After applying the update, the (immutable) field '_id' was found to have been altered to _id: ${showValue(copy._id)}`,
    );
  }
  const { _id, ...rest } = copy;
  return { _id: document._id, ...rest };
}

/** An update may not change the _id; one that was missing and is now set comes first. */
function keepId(before: Document, after: Document): Document {
  if (before._id === undefined && after._id === undefined) return after;
  if (before._id !== undefined && compareValues(before._id, after._id) !== 0) {
    throw immutableField("Performing an update on the path '_id' would modify the immutable field '_id'");
  }
  if (Object.keys(after)[0] === "_id") return after;
  const { _id, ...rest } = after;
  return { _id, ...rest };
}

type Step = { parts: string[]; modifier: Modifier };

function parseSteps(update: Document, id: unknown, isInsert: boolean): Step[] {
  const check = makeConflictCheck();
  const steps = Object.entries(updateOperators).flatMap(([operator, makeModifier]): Step[] => {
    const fields: unknown = update[operator];
    if (!Object.hasOwn(update, operator)) return [];
    if (!isDocument(fields)) {
      throw failedToParse(
        `Modifiers operate on fields but we found type ${typeName(fields)} instead. For example: {$mod: {<field>: ...}} not {${operator}: ${showValue(fields)}}`,
      );
    }
    const parsed = Object.keys(fields).map((path) => {
      const parts = parsePath(path);
      check(parts);
      return { parts, modifier: makeModifier(fields[path], path, id) };
    });
    return operator === "$setOnInsert" && !isInsert ? [] : parsed;
  });
  // Fields are changed, and new ones added, in the order of their names.
  return steps.sort((a, b) => compareValues(a.parts, b.parts));
}

/** What an upsert starts from: the equalities of its filter. */
export function upsertSeed(filter: Document): Document {
  const seed: Document = {};
  for (const [path, value] of filterEqualities(filter)) {
    if (path.includes(".")) throw notOffered("an upsert by a nested field");
    setField(seed, path, cloneValue(value));
  }
  return seed;
}
