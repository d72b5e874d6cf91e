import { type Document, typeByte, typeByteOf } from "../bson/bson-types.ts";
import { encodeValue, invert } from "../bson/index-keys.ts";
import type { Sort } from "../bson/order.ts";
import type { Collection, KeyIndex } from "../storage/collection.ts";
import { type Bound, type Conjunction, impliesPartial, type Predicates, readConjunction } from "./predicates.ts";

export type IndexScan = {
  index: KeyIndex;
  ranges: readonly KeyRange[];
  /** Whether each range is of one key, its `low`. */
  isOfKeys: boolean;
  isBackward: boolean;
};

/** How the documents of a query are found. */
export type Plan = {
  /** Undefined: every document is read. */
  scan: IndexScan | undefined;
  /** Whether the scan alone gives exactly the documents that match. */
  isExact: boolean;
  /** Whether the scan gives them in the order asked for. */
  isSorted: boolean;
  /** The only fields of them that are read; undefined: all. */
  fields?: ReadonlySet<string> | undefined;
};

export type PlanRequest = { filter: Document; sort?: Sort | undefined };

type Candidate = Plan & { score: number };

/** Chooses by rules: the index whose leading fields the filter fixes or bounds best, or that gives the wanted order. */
export function planQuery(collection: Collection, request: PlanRequest): Plan {
  const conjunction = readConjunction(request.filter);
  let best: Candidate | undefined;
  for (const index of [collection.idIndex, ...collection.indexes]) {
    const candidate = consider(index, conjunction, request);
    if (candidate !== undefined && (best === undefined || candidate.score > best.score)) best = candidate;
  }
  if (best !== undefined) return { ...best, isExact: best.isExact && !conjunction.hasMore };
  const isExact = Object.keys(request.filter).length === 0;
  return { scan: undefined, isExact, isSorted: request.sort === undefined };
}

function consider(index: KeyIndex, conjunction: Conjunction, request: PlanRequest): Candidate | undefined {
  if (index.partialFilter !== undefined && !impliesPartial(conjunction, index.partialFilter)) return undefined;
  if (index.isSparse && !index.paths.some((path) => conjunction.paths.get(path)?.needsPresence)) return undefined;
  const narrowing = narrow(index, conjunction);
  const order = sortDirection(index, request, narrowing.fixed);
  const { ranges, points, bounded, isExact } = narrowing;
  const givesOrder = order !== undefined && request.sort !== undefined;
  if (points + bounded === 0 && !givesOrder) return undefined;
  const isFullKey = index.isUnique && narrowing.fixed.size === index.paths.length;
  const score = points * 4 + bounded * 2 + (givesOrder ? 3 : 0);
  return {
    scan: { index, ranges, isOfKeys: points === index.paths.length, isBackward: order === -1 },
    isExact,
    isSorted: order !== undefined || request.sort === undefined,
    score: score + (isFullKey ? 1_000 : 0) - index.paths.length / 100,
  };
}

function narrow(index: KeyIndex, { paths }: Conjunction) {
  let prefixes: Uint8Array[] = [new Uint8Array(0)];
  const fixed = new Set<string>();
  const answered = new Set<string>();
  let points = 0;
  for (const path of index.paths) {
    const predicates = paths.get(path);
    if (predicates?.equals === undefined || predicates.equals.length * prefixes.length > maxRanges) break;
    prefixes = extendPrefixes(prefixes, predicates.equals, index.isDescending[points] === true);
    points++;
    if (predicates.equals.length === 1) fixed.add(path);
    if (predicates.isExact && predicates.from === undefined && predicates.to === undefined) answered.add(path);
  }
  const next = index.paths[points];
  const predicates = next === undefined ? undefined : paths.get(next);
  const isMultikey = (index.multikey & (1 << points)) !== 0;
  const bounds = boundsOf(predicates, isMultikey);
  if (next !== undefined && bounds !== undefined && predicates?.isExact === true && !isMultikey) answered.add(next);
  return {
    ranges: bounds
      ? prefixes.flatMap((prefix) => boundedRange(prefix, bounds, index.isDescending[points] === true) ?? [])
      : prefixes.map(prefixRange),
    /** How many fields of the index the filter fixes to values, and whether (1 or 0) it bounds the next one. */
    points,
    bounded: bounds ? 1 : 0,
    isExact: paths.keys().every((path) => answered.has(path)),
    /** Paths that have one value in all the ranges. */
    fixed,
  };
}

type Bounds = Pick<Predicates, "from" | "to">;

function boundsOf(predicates: Predicates | undefined, isMultikey: boolean): Bounds | undefined {
  if (predicates?.from === undefined && predicates?.to === undefined) return undefined;
  // Two elements of one array may each satisfy one of the bounds: both together would miss it.
  return isMultikey && predicates.from && predicates.to ? { from: predicates.from } : predicates;
}

/** 1 or -1 when a scan of the index in that direction gives the order asked for; undefined when none does. */
function sortDirection(index: KeyIndex, { sort }: PlanRequest, fixed: ReadonlySet<string>): number | undefined {
  if (sort === undefined) return 1;
  if (index.multikey !== 0) return undefined;
  const open = [...index.paths.keys()].filter((place) => !fixed.has(index.paths[place] ?? ""));
  const wanted = Object.entries(sort).filter(([path]) => !fixed.has(path));
  const directions = wanted.map(([path, direction], at) => {
    const place = open[at] ?? -1;
    if (index.paths[place] !== path) return undefined;
    return index.isDescending[place] === true ? -direction : direction;
  });
  const first = wanted.length === 0 ? 1 : directions[0];
  return directions.every((direction) => direction === first) ? first : undefined;
}

/** Keys from `low` (inclusive) to `high` (exclusive). */
export type KeyRange = { low: Uint8Array; high: Uint8Array };

/** More ranges than this (long `$in` lists multiplied) are not worth it: the last list is then tested per document. */
const maxRanges = 2_000;

const everything: KeyRange = { low: new Uint8Array(0), high: new Uint8Array([0xff]) };

/** The first key after all keys that begin with `prefix`. */
export function successor(prefix: Uint8Array): Uint8Array {
  let end = prefix.length;
  while (end > 0 && prefix[end - 1] === 0xff) end--;
  if (end === 0) return everything.high;
  const next = Buffer.from(prefix.subarray(0, end));
  next[end - 1] = (next[end - 1] ?? 0) + 1;
  return next;
}

/** All keys that begin with `prefix`. */
function prefixRange(prefix: Uint8Array): KeyRange {
  return prefix.length === 0 ? everything : { low: prefix, high: successor(prefix) };
}

/** `prefixes`, each continued by each of the values, in the order of the keys and without repeats. */
function extendPrefixes(
  prefixes: readonly Uint8Array[],
  values: readonly unknown[],
  isDescending: boolean,
): Uint8Array[] {
  const parts = new Map<string, Buffer>();
  for (const value of values) {
    const part = encodeValue(value, isDescending);
    parts.set(part.toString("latin1"), part);
  }
  const sorted = [...parts.values()].sort(Buffer.compare);
  return prefixes.flatMap((prefix) =>
    sorted.map((part) => (prefix.length === 0 ? part : Buffer.concat([prefix, part]))),
  );
}

/** The keys that begin with `prefix` and whose next part lies between the two ends; undefined when no value does. */
function boundedRange(prefix: Uint8Array, { from, to }: Bounds, isDescending: boolean): KeyRange | undefined {
  const type = typeByteOf((from ?? to)?.value);
  if (from && to && typeByteOf(to.value) !== type) return undefined;
  // NaN is filed before all other numbers, and is in no range of them.
  const lowest = type === typeByte.number ? { value: Number.NEGATIVE_INFINITY, isInclusive: true } : undefined;
  const ends = { first: from ?? lowest, last: to };
  const [first, last] = isDescending ? [ends.last, ends.first] : [ends.first, ends.last];
  const bracket = new Uint8Array([type]);
  if (isDescending) invert(bracket, 0, 1);
  const keyOf = (bound: Bound) => encodeValue(bound.value, isDescending);
  const low = first === undefined ? bracket : first.isInclusive ? keyOf(first) : successor(keyOf(first));
  const high = last === undefined ? successor(bracket) : last.isInclusive ? successor(keyOf(last)) : keyOf(last);
  return { low: Buffer.concat([prefix, low]), high: Buffer.concat([prefix, high]) };
}
