import { expect } from "chai";
import { makeRetryTimes } from "../../src/workflows/evaluator.ts";

describe("the wait for a child process", () => {
  it("grows with what was refused of a tenant of late, up to a limit, and passes", () => {
    let now = 0;
    const retryAfterMs = makeRetryTimes(() => now);
    expect(retryAfterMs("evil")).to.equal(1_000);
    let last = 0;
    for (let refused = 0; refused < 50; refused += 1) last = retryAfterMs("evil");
    expect(last).to.equal(6_000);
    for (let refused = 0; refused < 1_000; refused += 1) last = retryAfterMs("evil");
    expect(last).to.equal(20_000);
    expect(retryAfterMs("acme"), "another tenant").to.equal(1_000);
    now += 10_000;
    expect(retryAfterMs("acme")).to.equal(1_050);
    now += 60_000;
    expect(retryAfterMs("evil"), "later").to.equal(1_000);
  });
});
