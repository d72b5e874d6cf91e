import { blockScan } from "./block-scan.ts";
import { encodeDirection } from "./direction-codes.ts";
import { dotProduct } from "./dot-product.ts";
import type { Partition, VectorRow } from "./partition.ts";

/** `among`: which of the rows are wanted, and what share of them that is. */
type Search = {
  vector: Float32Array;
  count: number;
  rows: readonly VectorRow[];
  among?: { isWanted(row: VectorRow): boolean; share: number };
};

/**
 * The rows nearest to a vector of length 1, nearest first: of all rows of a partition, or of some. They may be fewer than
 * `count` where only some of the rows are wanted.
 */
export function nearestRows(partition: Partition, { count, ...given }: Search): VectorRow[] {
  const search = { ...given, count: Math.min(count, given.rows.length) };
  if (search.count === 0) return [];
  return nearestByCodes(partition, search) ?? nearestByVectors(partition, search);
}

/** From so many rows on, their codes are compared first. */
const codesFrom = 2_000;
/** The nearest codes whose vectors are compared after that: at most so many, or so many times as many as are wanted. */
const minCandidates = 400;
const candidatesAWanted = 8;
/** Vectors that are compared at a time. */
const slice = 50;
/** What the arithmetic of the library may add to the error of the codes: far above the 1e-7 that was measured. */
const rounding = 1e-3;

/**
 * Compares the codes, a quarter of the bytes, and then the vectors of the rows whose codes are nearest, until no other row can
 * be as near as the last of the result, by the error that codes may have. Undefined when that takes too many.
 */
function nearestByCodes(partition: Partition, { vector, count, rows, among }: Search): VectorRow[] | undefined {
  const scan = blockScan().codes;
  const asked = Math.max(minCandidates, Math.ceil((candidatesAWanted * count) / (among?.share ?? 1)));
  if (scan === undefined || rows.length < codesFrom || asked >= rows.length) return undefined;
  const { dimensions, matrix, codes, codeError } = partition;
  const code = new Int8Array(dimensions);
  const error = encodeDirection(vector, code) + codeError + rounding;
  const { places, distances } = scan(blockOf(partition, rows, codes), code, asked);
  let nearest: { row: VectorRow; score: number }[] = [];
  for (let from = 0; from < asked; from += slice) {
    const near = places.slice(from, from + slice).flatMap((place) => rows[place] ?? []);
    const candidates = among ? near.filter(among.isWanted) : near;
    const scored = candidates.map((row) => ({ row, score: dotProduct(matrix, row.place * dimensions, vector) }));
    nearest = [...nearest, ...scored].sort((a, b) => b.score - a.score || a.row.place - b.row.place).slice(0, count);
    const mostOfOthers = 1 - (distances[Math.min(from + slice, asked) - 1] ?? 0) + error;
    if (nearest.length === count && (nearest.at(-1)?.score ?? 0) > mostOfOthers) return nearest.map(({ row }) => row);
  }
  return undefined;
}

function nearestByVectors(partition: Partition, { vector, count, rows, among }: Search): VectorRow[] {
  // More are asked for than are wanted: what lies behind them is farther away.
  const asked = among ? Math.min(rows.length, Math.ceil(count / among.share) + count + 16) : count;
  const { places } = blockScan().vectors(blockOf(partition, rows, partition.matrix), vector, asked);
  const near = places.flatMap((place) => rows[place] ?? []);
  return among ? near.filter(among.isWanted).slice(0, count) : near;
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
