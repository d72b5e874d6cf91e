import { expect } from "chai";
import { makeQuotas } from "../../src/tenancy/quotas.ts";

describe("the count of a quota", () => {
  const { now } = performance;
  afterEach(() => {
    performance.now = now;
  });

  it("keeps what was allowed while it was taken anew", async () => {
    const counts: PromiseWithResolvers<number>[] = [];
    const countOpen = () => {
      const count = Promise.withResolvers<number>();
      counts.push(count);
      if (counts.length > 2) count.resolve(2);
      return count.promise;
    };
    const quotas = makeQuotas({ store: { jobs: { countOpen } } as never, limits: { openJobs: 2 } as never });
    const first = quotas.check("ten_1", "openJobs");
    counts[0]?.resolve(0);
    await first;
    performance.now = () => now.call(performance) + 3_000; // old enough for a new count, which goes on beside the calls
    await quotas.check("ten_1", "openJobs");
    expect(counts).to.have.length(2);
    counts[1]?.resolve(1); // the second job was not there yet
    await new Promise((resolve) => setImmediate(resolve));
    const third = quotas.check("ten_1", "openJobs").then(
      () => "allowed",
      (error: { code?: string }) => error.code,
    );
    expect(await third).to.equal("too_many_concurrent");
  });
});
