import { decodeFields } from "../bson/bson-reader.ts";
import { type Document, getField } from "../bson/bson-types.ts";
import { encodeKey, encodeValue } from "../bson/index-keys.ts";
import { type Collection, checkThere } from "../storage/collection.ts";
import { planQuery, successor } from "./planner.ts";
import { isBriefFor, type KeyRow } from "./query.ts";

/**
 * The values of a field among the documents that a filter matches, each once, in their order; where an index has them in order
 * behind the fields that the filter fixes, and they are texts. Then each costs one look into it, however many documents have
 * it. Undefined elsewhere.
 */
export function indexedValues(
  collection: Collection | undefined,
  { path, filter, limit }: { path: string; filter: Document; limit: number },
): string[] | undefined {
  if (collection === undefined) return undefined;
  checkThere(collection);
  const { scan, isExact } = planQuery(collection, { filter, sort: { [path]: 1 } });
  const [range, ...others] = scan?.ranges ?? [];
  const at = scan?.index.paths.indexOf(path) ?? -1;
  const before = scan?.index.paths.slice(0, at).map((name): unknown => filter[name]) ?? [];
  const isServed = at >= 0 && isExact && others.length === 0 && before.every((value) => typeof value === "string");
  if (!isServed || !scan || !range || scan.isBackward || scan.index.multikey !== 0) return undefined;
  const { keys, isDescending } = scan.index;
  const prefix = encodeKey(before, isDescending);
  const wanted = new Set([path]);
  const values: string[] = [];
  const isBrief = isBriefFor(collection, wanted);
  for (let low = range.low; values.length < limit; ) {
    const found = keys.forward.get(isBrief, low, -1, range.high, 1) as unknown as KeyRow | undefined; // prepared so
    if (found === undefined) break;
    const value = getField(decodeFields(found[2], wanted), path);
    if (typeof value !== "string") return undefined;
    values.push(value);
    low = successor(found[0].subarray(0, prefix.length + encodeValue(value).length));
  }
  return values;
}
