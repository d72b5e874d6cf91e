import { type Document, getField } from "../bson/bson-types.ts";
import { encodeKey, encodeValue, keyOf } from "../bson/index-keys.ts";
import { decodeFields } from "../bson/stored-fields.ts";
import { type Collection, checkThere, type Index } from "../storage/collection.ts";
import { planQuery, successor } from "./planner.ts";
import { isBriefFor, type KeyRow } from "./query.ts";

type Request = { path: string; filter: Document; limit: number };
type Found = { index: Index; values: string[] };
/** What was found, and the changes of its index until then. */
type Known = Found & { changes: number };

/** Requests that are known of a collection. They are asked for with each query of a tenant, and their values seldom change. */
const mostKnown = 1_000;
const known = new WeakMap<Collection, Map<string, Known>>();

/**
 * The values of a field among the documents that a filter matches, each once, in their order; where an index has them in order
 * behind the fields that the filter fixes, and they are texts. Then each costs one look into it, however many documents have
 * it, and nothing while no key of the index comes or goes. Undefined elsewhere.
 */
export function indexedValues(collection: Collection | undefined, request: Request): readonly string[] | undefined {
  if (collection === undefined) return undefined;
  checkThere(collection);
  const ofCollection = known.get(collection) ?? new Map<string, Known>();
  const name = keyOf(request);
  const before = ofCollection.get(name);
  if (before && before.changes === before.index.changes) return before.values;
  const found = findValues(collection, request);
  if (!found) return undefined;
  if (ofCollection.size >= mostKnown) ofCollection.clear();
  known.set(collection, ofCollection.set(name, { ...found, changes: found.index.changes }));
  return found.values;
}

function findValues(collection: Collection, { path, filter, limit }: Request): Found | undefined {
  const { scan, isExact } = planQuery(collection, { filter, sort: { [path]: 1 } });
  const [range, ...others] = scan?.ranges ?? [];
  const at = scan?.index.paths.indexOf(path) ?? -1;
  const before = scan?.index.paths.slice(0, at).map((name): unknown => filter[name]) ?? [];
  const isServed = at >= 0 && isExact && others.length === 0 && before.every((value) => typeof value === "string");
  if (!isServed || !scan || !range || scan.isBackward || scan.index.multikey !== 0) return undefined;
  const index = collection.indexes.find((one) => one === scan.index);
  if (!index) return undefined;
  const { keys, isDescending } = index;
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
  return { index, values };
}
