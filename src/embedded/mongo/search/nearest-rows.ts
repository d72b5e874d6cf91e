import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import type { Partition, VectorRow } from "./partition.ts";
import { dotProduct } from "./partition.ts";

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
export function nearestRows(partition: Partition, { vector, count, rows, among }: Search): NearRow[] {
  if (rows.length === 0 || count === 0) return [];
  // More are asked for than are wanted: what lies behind them is farther away.
  const asked = among ? Math.ceil(count / among.share) + count + 16 : count;
  const places = blockScan()(blockOf(partition, rows), vector, Math.min(asked, rows.length));
  const near = places.flatMap((place) => rows[place] ?? []);
  const wanted = among ? near.filter(among.isWanted).slice(0, count) : near;
  return wanted.map((row) => compare(partition, row, vector));
}

function compare({ matrix, dimensions }: Partition, row: VectorRow, vector: Float32Array): NearRow {
  return { row, product: dotProduct(matrix, row.place * dimensions, vector) };
}

/** The vectors of some rows, one behind the other: the block itself for all of them, else a copy. */
function blockOf({ dimensions, matrix, rows: all }: Partition, rows: readonly VectorRow[]): Float32Array {
  const length = rows.length * dimensions;
  if (rows === all) return matrix.subarray(0, length);
  const copy = new Float32Array(length);
  for (const [at, { place }] of rows.entries())
    copy.set(matrix.subarray(place * dimensions, (place + 1) * dimensions), at * dimensions);
  return copy;
}

/**
 * Places of the nearest rows of a block, nearest first. All vectors are of length 1. A block begins at the start of its
 * buffer: the library ignores a view's offset.
 */
type Scan = (block: Float32Array, query: Float32Array, wanted: number) => number[];

let loaded: Scan | undefined;

/** The SIMD library where it has a binary for this machine; a plain loop, some ten times slower, elsewhere. */
function blockScan(): Scan {
  loaded ??= loadLibrary() ?? scanInJavaScript;
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
  return (block, query, wanted) => {
    const threads = block.byteLength >= threadsFrom ? cores : 1;
    const { keys } = usearch.exactSearch(block, query, query.length, wanted, IP, threads);
    return Array.from(keys, Number);
  };
}

function scanInJavaScript(block: Float32Array, query: Float32Array, wanted: number): number[] {
  const places = Array.from({ length: block.length / query.length }, (_, place) => place);
  const products = places.map((place) => dotProduct(block, place * query.length, query));
  return places.sort((a, b) => (products[b] ?? 0) - (products[a] ?? 0)).slice(0, wanted);
}
