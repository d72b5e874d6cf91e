import type { Document } from "../bson/bson-types.ts";
import type { Sort } from "../bson/order.ts";
import type { Collection, KeyIndex } from "../storage/collection.ts";
import { boundedRange, extendPrefixes, type KeyRange, maxRanges, prefixRange } from "./key-ranges.ts";
import { type Conjunction, impliesPartial, type Predicates, readConjunction } from "./predicates.ts";

export type IndexScan = {
  index: KeyIndex;
  ranges: readonly KeyRange[];
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
};

export type PlanRequest = { filter: Document; sort?: Sort | undefined };

type Candidate = Plan & { score: number };

/**
 * Chooses how to find a query's documents: the index whose leading fields the filter fixes or bounds best, with a bonus
 * for one that gives the order asked for. Rules, not statistics: an equality counts more than a range.
 */
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
    scan: { index, ranges, isBackward: order === -1 },
    isExact,
    isSorted: order !== undefined || request.sort === undefined,
    score: score + (isFullKey ? 1_000 : 0) - index.paths.length / 100,
  };
}

type Narrowing = {
  ranges: KeyRange[];
  /** How many fields of the index the filter fixes to values, and whether (1 or 0) it bounds the next one. */
  points: number;
  bounded: number;
  isExact: boolean;
  /** Paths that have one value in all the ranges. */
  fixed: Set<string>;
};

function narrow(index: KeyIndex, conjunction: Conjunction): Narrowing {
  let prefixes: Uint8Array[] = [new Uint8Array(0)];
  const fixed = new Set<string>();
  const answered = new Set<string>();
  let points = 0;
  for (const [place, path] of index.paths.entries()) {
    const isDescending = index.isDescending[place] === true;
    const isMultikey = (index.multikey & (1 << place)) !== 0;
    const predicates = conjunction.paths.get(path);
    if (predicates?.equals === undefined || predicates.equals.length * prefixes.length > maxRanges) {
      const ranges = boundedRanges(prefixes, predicates, isDescending, isMultikey);
      const isBounded = ranges !== undefined;
      if (isBounded && predicates?.isExact === true && !isMultikey) answered.add(path);
      return {
        ranges: ranges ?? prefixes.map(prefixRange),
        points,
        bounded: isBounded ? 1 : 0,
        isExact: isAllAnswered(conjunction, answered),
        fixed,
      };
    }
    prefixes = extendPrefixes(prefixes, predicates.equals, isDescending);
    points++;
    if (predicates.equals.length === 1) fixed.add(path);
    if (isAnsweredByEquality(predicates)) answered.add(path);
  }
  const isExact = isAllAnswered(conjunction, answered);
  return { ranges: prefixes.map(prefixRange), points, bounded: 0, isExact, fixed };
}

function isAnsweredByEquality(predicates: Predicates): boolean {
  return predicates.isExact && predicates.from === undefined && predicates.to === undefined;
}

function isAllAnswered(conjunction: Conjunction, answered: ReadonlySet<string>): boolean {
  for (const path of conjunction.paths.keys()) if (!answered.has(path)) return false;
  return true;
}

function boundedRanges(
  prefixes: readonly Uint8Array[],
  predicates: Predicates | undefined,
  isDescending: boolean,
  isMultikey: boolean,
): KeyRange[] | undefined {
  if (predicates?.from === undefined && predicates?.to === undefined) return undefined;
  // Two elements of one array may each satisfy one of the bounds: both together would miss it.
  const bounds = isMultikey && predicates.from && predicates.to ? { from: predicates.from } : predicates;
  return prefixes.flatMap((prefix) => boundedRange(prefix, bounds, isDescending) ?? []);
}

/** 1 or -1 when a scan of the index in that direction gives the order asked for; undefined when none does. */
function sortDirection(index: KeyIndex, request: PlanRequest, fixed: ReadonlySet<string>): 1 | -1 | undefined {
  if (request.sort === undefined) return 1;
  if (index.multikey !== 0) return undefined;
  let direction: 1 | -1 | undefined;
  let place = 0;
  for (const [path, wanted] of Object.entries(request.sort)) {
    if (fixed.has(path)) continue;
    while (index.paths[place] !== undefined && index.paths[place] !== path && fixed.has(index.paths[place] ?? ""))
      place++;
    if (index.paths[place] !== path) return undefined;
    const given = index.isDescending[place] === true ? -1 : 1;
    const needed = given === wanted ? 1 : -1;
    if (direction !== undefined && direction !== needed) return undefined;
    direction = needed;
    place++;
  }
  return direction ?? 1;
}
