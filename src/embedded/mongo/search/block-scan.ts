import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { dotProduct } from "./dot-product.ts";

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
export function blockScan(): Scan {
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
