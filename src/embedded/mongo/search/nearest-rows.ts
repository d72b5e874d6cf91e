import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import type { Partition, VectorRow } from "./partition.ts";
import { dotProduct, encodeVector, scaleFor } from "./vector-codes.ts";

/** `among`: which of the rows are wanted, and what share of them that is. */
type Search = {
  vector: Float32Array;
  count: number;
  rows: readonly VectorRow[];
  among?: { isWanted(row: VectorRow): boolean; share: number };
};

/** A row, and the product of its vector and the one that was searched for. */
export type NearRow = { row: VectorRow; product: number };

/**
 * The rows nearest to a vector of length 1, nearest first: of all rows of a partition, or of some. They may be fewer than
 * `count` where only some of the rows are wanted.
 */
export function nearestRows(partition: Partition, { count, ...given }: Search): NearRow[] {
  const search = { ...given, count: Math.min(count, given.rows.length) };
  if (search.count === 0) return [];
  return nearestByCodes(partition, search) ?? nearestByVectors(partition, search);
}

/** From so many rows on, their codes are compared first. */
const codesFrom = 2_000;
/** How many of the nearest codes are listed: this many times what is wanted, and at least 200; if that fails, four times that. */
const listedAWanted = 5;
const leastListed = 200;
/** Vectors that are compared at a time. */
const slice = 50;
/** What the arithmetic of the library may add to the error of the codes: far above the 1e-7 that was measured. */
const rounding = 1e-3;

/** Compares the codes, a quarter of the bytes, and then the vectors of the nearest; undefined when that takes too many. */
function nearestByCodes(partition: Partition, search: Search): NearRow[] | undefined {
  const scan = blockScan().codes;
  const { vector, count, rows, among } = search;
  if (scan === undefined || rows.length < codesFrom) return undefined;
  const { dimensions, codes, codeScale, codeError } = partition;
  const [code, scale] = [new Int8Array(dimensions), scaleFor(vector)];
  // A vector has length 1, and its code what it has lost more at most.
  const error = encodeVector(vector, scale, code) * (1 + codeError) + codeError + rounding;
  const block = blockOf(partition, rows, codes);
  for (const times of [1, 4]) {
    const listed = times * Math.max(leastListed, Math.ceil((listedAWanted * count) / (among?.share ?? 1)));
    if (listed >= rows.length) return undefined;
    const list = scan(block, code, listed);
    const mostBehind = (place: number) => (1 - (list.distances[place] ?? 0)) / (scale * codeScale) + error;
    const nearest = nearestListed(partition, { ...search, places: list.places, mostBehind });
    if (nearest) return nearest;
  }
  return undefined;
}

/** The nearest of the listed rows; undefined when one behind them may be as near, by the largest product that it can have. */
function nearestListed(
  partition: Partition,
  { vector, count, rows, among, places, mostBehind }: Search & { places: number[]; mostBehind(place: number): number },
): NearRow[] | undefined {
  let nearest: NearRow[] = [];
  for (let from = 0; from < places.length; from += slice) {
    const near = places.slice(from, from + slice).flatMap((place) => rows[place] ?? []);
    const candidates = among ? near.filter(among.isWanted) : near;
    const compared = candidates.map((row) => compare(partition, row, vector));
    nearest = [...nearest, ...compared]
      .sort((a, b) => b.product - a.product || a.row.place - b.row.place)
      .slice(0, count);
    const most = mostBehind(Math.min(from + slice, places.length) - 1);
    if (nearest.length === count && (nearest.at(-1)?.product ?? 0) > most) return nearest;
  }
  return undefined;
}

function nearestByVectors(partition: Partition, { vector, count, rows, among }: Search): NearRow[] {
  // More are asked for than are wanted: what lies behind them is farther away.
  const asked = among ? Math.min(rows.length, Math.ceil(count / among.share) + count + 16) : count;
  const { places } = blockScan().vectors(blockOf(partition, rows, partition.matrix), vector, asked);
  const near = places.flatMap((place) => rows[place] ?? []);
  const wanted = among ? near.filter(among.isWanted).slice(0, count) : near;
  return wanted.map((row) => compare(partition, row, vector));
}

function compare({ matrix, dimensions }: Partition, row: VectorRow, vector: Float32Array): NearRow {
  return { row, product: dotProduct(matrix, row.place * dimensions, vector) };
}

/** What a block holds of some rows: the block itself for all of them, else a copy. */
function blockOf<B extends Float32Array | Int8Array>(
  { dimensions, ...partition }: Partition,
  rows: readonly VectorRow[],
  block: B,
): B {
  const length = rows.length * dimensions;
  if (rows === partition.rows) return block.subarray(0, length) as B;
  const copy = (block instanceof Int8Array ? new Int8Array(length) : new Float32Array(length)) as B;
  for (const [at, { place }] of rows.entries())
    copy.set(block.subarray(place * dimensions, (place + 1) * dimensions), at * dimensions);
  return copy;
}

/** Places of the nearest rows of a block, nearest first, and how far they are: 1 less the product. */
type Nearest = { places: number[]; distances: ArrayLike<number> };

/** All vectors are of length 1. A block begins at the start of its buffer: the library ignores a view's offset. */
type Scan = {
  vectors(block: Float32Array, query: Float32Array, wanted: number): Nearest;
  /** The same for the codes of vectors; not there where that is slower. */
  codes?(block: Int8Array, query: Int8Array, wanted: number): Nearest;
};

let loaded: Scan | undefined;

/** The SIMD library where it has a binary for this machine; a plain loop, some ten times slower, elsewhere. */
function blockScan(): Scan {
  loaded ??= loadLibrary() ?? { vectors: scanInJavaScript };
  return loaded;
}

/** Above this many bytes a scan is worth the cost of starting threads. */
const threadsFrom = 16_000_000;
const maxThreads = 4;

function loadLibrary(): Scan | undefined {
  let usearch: typeof import("usearch");
  try {
    usearch = createRequire(import.meta.url)("usearch");
  } catch {
    return undefined;
  }
  const cores = Math.min(availableParallelism(), maxThreads);
  const { IP } = usearch.MetricKind;
  const scan = <B extends Float32Array | Int8Array>(block: B, query: B, wanted: number): Nearest => {
    const threads = block.byteLength >= threadsFrom ? cores : 1;
    const { keys, distances } = usearch.exactSearch(block, query, query.length, wanted, IP, threads);
    return { places: Array.from(keys, Number), distances };
  };
  return { vectors: scan<Float32Array>, codes: scan<Int8Array> };
}

function scanInJavaScript(block: Float32Array, query: Float32Array, wanted: number): Nearest {
  const places = Array.from({ length: block.length / query.length }, (_, place) => place);
  const distances = places.map((place) => 1 - dotProduct(block, place * query.length, query));
  const nearest = places.sort((a, b) => (distances[a] ?? 0) - (distances[b] ?? 0)).slice(0, wanted);
  return { places: nearest, distances: nearest.map((place) => distances[place] ?? 0) };
}
