import { createRequire } from "node:module";
import { availableParallelism } from "node:os";

export type Similarity = "cosine" | "dotProduct" | "euclidean";

/** Places of the nearest vectors, nearest first. */
type Scan = (block: Float32Array, query: Float32Array, wanted: number, similarity: Similarity) => number[];

/** Above this many numbers a scan is worth the cost of starting threads. */
const threadsFrom = 4_000_000;
const maxThreads = 4;

let loadedScan: Scan | undefined;

/**
 * Finds the `wanted` vectors of `block` nearest to `query` by comparing all of them. For cosine, block and query hold
 * vectors of length 1. `block` must begin at the start of its buffer: the library does not look at a view's offset.
 */
export function scanNearest(
  block: Float32Array,
  query: Float32Array,
  wanted: number,
  similarity: Similarity,
): number[] {
  loadedScan ??= loadScan();
  return loadedScan(block, query, wanted, similarity);
}

type Usearch = {
  MetricKind: { IP: string; L2sq: string };
  exactSearch(
    dataset: Float32Array,
    query: Float32Array,
    dimensions: number,
    count: number,
    metric: string,
    threads: number,
  ): { keys: BigUint64Array };
};

/** The SIMD library where it has a binary for this machine; a plain loop, some ten times slower, elsewhere. */
function loadScan(): Scan {
  try {
    const usearch: Usearch = createRequire(import.meta.url)("usearch");
    const cores = Math.min(availableParallelism(), maxThreads);
    return (block, query, wanted, similarity) => {
      const metric = similarity === "euclidean" ? usearch.MetricKind.L2sq : usearch.MetricKind.IP;
      const threads = block.length >= threadsFrom ? cores : 1;
      const { keys } = usearch.exactSearch(block, query, query.length, wanted, metric, threads);
      return Array.from(keys, Number);
    };
  } catch {
    return scanInJavaScript;
  }
}

function scanInJavaScript(block: Float32Array, query: Float32Array, wanted: number, similarity: Similarity): number[] {
  const count = block.length / query.length;
  const distances = new Float32Array(count);
  for (let place = 0; place < count; place++) {
    const start = place * query.length;
    distances[place] =
      similarity === "euclidean" ? squaredDistance(block, start, query) : -dotProduct(block, start, query);
  }
  const places = Array.from(distances.keys());
  return places.sort((a, b) => (distances[a] ?? 0) - (distances[b] ?? 0)).slice(0, wanted);
}

/** Dot product of `query` and the vector that begins at `start`. */
export function dotProduct(block: Float32Array, start: number, query: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < query.length; at++) sum += (block[start + at] ?? 0) * (query[at] ?? 0);
  return sum;
}

export function squaredDistance(block: Float32Array, start: number, query: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < query.length; at++) {
    const difference = (block[start + at] ?? 0) - (query[at] ?? 0);
    sum += difference * difference;
  }
  return sum;
}

/** The score that Atlas gives: between 0 and 1 for cosine and for vectors of length 1. */
export function scoreOfVector(block: Float32Array, start: number, query: Float32Array, similarity: Similarity): number {
  if (similarity === "euclidean") return 1 / (1 + Math.sqrt(squaredDistance(block, start, query)));
  const product = dotProduct(block, start, query);
  if (similarity === "dotProduct") return (1 + product) / 2;
  // Both are of length 1 but for the rounding to 32 bits, which is taken out again.
  const end = start + query.length;
  const vector = block.subarray(start, end);
  const lengths = Math.sqrt(dotProduct(vector, 0, vector) * dotProduct(query, 0, query));
  return (1 + Math.max(-1, Math.min(1, product / lengths))) / 2;
}

/** The vector with length 1; undefined when it has no direction. */
export function toUnitLength(vector: Float32Array): Float32Array | undefined {
  const length = Math.sqrt(dotProduct(vector, 0, vector));
  if (length === 0 || !Number.isFinite(length)) return undefined;
  const unit = new Float32Array(vector.length);
  for (let at = 0; at < unit.length; at++) unit[at] = (vector[at] ?? 0) / length;
  return unit;
}
