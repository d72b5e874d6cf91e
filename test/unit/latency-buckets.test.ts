import { expect } from "chai";
import { type BucketCounts, bucketFields, bucketOf, percentilesOf } from "../../src/store/latency-buckets.ts";

const countsOf = (times: readonly number[]) => {
  const counts: BucketCounts = {};
  for (const ms of times) counts[bucketOf("ms", ms)] = (counts[bucketOf("ms", ms)] ?? 0) + 1;
  return counts;
};

describe("buckets of times", () => {
  it("give percentiles within 13 % of the truth, from a millisecond to a quarter of an hour", () => {
    for (let scale = 1; scale < 900; scale *= 1.7) {
      const times = Array.from({ length: 1_000 }, (_, at) => scale * (at + 1));
      const found = percentilesOf(countsOf(times), "ms");
      for (const [name, share] of [
        ["p50", 0.5],
        ["p95", 0.95],
        ["p99", 0.99],
      ] as const) {
        const truth = times[share * 1_000 - 1] ?? 0;
        expect(Math.abs((found?.[name] ?? 0) - truth) / truth, `${name} of ${truth} ms`).to.be.below(0.13);
      }
    }
  });

  it("are of a fixed number, whatever is measured, and what is empty has no percentiles", () => {
    for (const ms of [0, 0.2, 1, 1e9, Number.MAX_VALUE]) expect(bucketFields).to.include(bucketOf("ms", ms));
    expect(bucketFields).to.have.length(124);
    expect(percentilesOf({}, "ms")).to.equal(undefined);
    expect(percentilesOf(countsOf([10]), "firstMs")).to.equal(undefined);
    expect(percentilesOf(countsOf([10]), "ms")).to.deep.equal({ p50: 8.98, p95: 8.98, p99: 8.98 });
  });
});
