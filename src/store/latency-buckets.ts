/**
 * Times are counted in buckets, which can be added up over calls, hours and groups: each is a third of an octave, so that what
 * is read from them is at most 13 % from the truth.
 */
const BUCKETS_PER_OCTAVE = 3;
/** The first bucket holds all below 1 ms, the last one all above 2^20 ms, about 17 minutes. */
const BUCKETS = 20 * BUCKETS_PER_OCTAVE + 2;

/** What is measured of a call: all of it, and the time to the first token where it was streamed. */
export const measures = ["ms", "firstMs"] as const;
export type Measure = (typeof measures)[number];
/** How many calls each bucket has, by the field's name, as `ms27`; without those that have none. */
export type BucketCounts = Record<string, number>;

const numbers = Array.from({ length: BUCKETS }, (_, number) => number);
/** The names of the fields of all buckets. */
export const bucketFields: readonly string[] = measures.flatMap((measure) =>
  numbers.map((number) => `${measure}${number}`),
);

/** The field of the bucket in which a time counts, in ms. */
export function bucketOf(measure: Measure, ms: number): string {
  const number = ms < 1 ? 0 : 1 + Math.floor(Math.log2(ms) * BUCKETS_PER_OCTAVE);
  return `${measure}${Math.min(number, BUCKETS - 1)}`;
}

/** Times in ms below which half, 95 % and 99 % of the calls stay. */
export type Percentiles = { p50: number; p95: number; p99: number };

/** The percentiles of what was counted; undefined where nothing was. */
export function percentilesOf(counts: BucketCounts, measure: Measure): Percentiles | undefined {
  const found = numbers.map((number) => counts[`${measure}${number}`] ?? 0);
  const total = found.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const at = (share: number) => {
    let left = Math.ceil(total * share);
    const number = found.findIndex((count) => {
      left -= count;
      return left <= 0;
    });
    return middleOf(number);
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** The time that stands for a bucket, in ms, to three digits. */
function middleOf(number: number): number {
  if (number === 0) return 0.5;
  return Number((2 ** ((number - 0.5) / BUCKETS_PER_OCTAVE)).toPrecision(3));
}
