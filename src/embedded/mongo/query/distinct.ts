import { decodeFields } from "../bson/bson-reader.ts";
import { type Document, getField } from "../bson/bson-types.ts";
import { encodeKey, encodeValue } from "../bson/index-keys.ts";
import { located, notOffered } from "../command-error.ts";
import { type Collection, checkThere } from "../storage/collection.ts";
import { compileFilter } from "./filter.ts";
import { planQuery, successor } from "./planner.ts";
import { isBriefFor, type KeyRow } from "./query.ts";

const mostValues = 1_000;

/**
 * The values of a field among the documents that a filter matches, each once, in their order. An index must have them in order
 * behind the fields that the filter fixes: then each value costs one look into it, however many documents have it.
 * @throws CommandError 238 where no index has them so, or a value is no string; 17217 for more than 1,000 values.
 */
export function distinctValues(collection: Collection | undefined, path: string, filter: Document): string[] {
  if (collection === undefined) {
    compileFilter(filter);
    return [];
  }
  checkThere(collection);
  const { scan, isExact } = planQuery(collection, { filter, sort: { [path]: 1 } });
  const [range, ...others] = scan?.ranges ?? [];
  const at = scan?.index.paths.indexOf(path) ?? -1;
  const before = scan?.index.paths.slice(0, at).map((name): unknown => filter[name]) ?? [];
  const isServed = at >= 0 && isExact && others.length === 0 && before.every((value) => typeof value === "string");
  if (!isServed || !scan || !range || scan.isBackward || scan.index.multikey !== 0)
    throw notOffered(`distinct of ${path}, which no index has in order`);
  const { keys, isDescending } = scan.index;
  const prefix = encodeKey(before, isDescending);
  const wanted = new Set([path]);
  const values: string[] = [];
  const isBrief = isBriefFor(collection, wanted);
  for (let low = range.low; ; ) {
    const found = keys.forward.get(isBrief, low, -1, range.high, 1) as unknown as KeyRow | undefined; // prepared so
    if (found === undefined) return values;
    const value = getField(decodeFields(found[2], wanted), path);
    if (typeof value !== "string") throw notOffered(`distinct of ${path} where it is no string`);
    if (values.length === mostValues) throw located(17217, `distinct too big, more than ${mostValues} values`);
    values.push(value);
    low = successor(found[0].subarray(0, prefix.length + encodeValue(value).length));
  }
}
