import { expect } from "chai";
import { makePauses } from "../../src/webhooks/outbox.ts";

describe("a receiver of callbacks", () => {
  it("is left alone after five messages without an answer, twice as long after each further one", () => {
    let now = 1_000_000;
    const pauses = makePauses(() => now);
    for (let n = 0; n < 4; n += 1) pauses.failed("a");
    expect(pauses.until("a")).to.equal(undefined);
    const lengths = Array.from({ length: 8 }, () => {
      pauses.failed("a");
      const until = pauses.until("a") ?? 0;
      const length = until - now;
      now = until;
      return length;
    });
    expect(pauses.until("a"), "when it is over").to.equal(undefined);
    for (const [at, length] of lengths.entries()) {
      const most = Math.min(30_000 * 2 ** at, 600_000);
      expect(length).to.be.within(most / 2, most);
    }
    expect(pauses.until("b"), "another one").to.equal(undefined);
  });

  it("is called as before once it has answered", () => {
    const pauses = makePauses();
    for (let n = 0; n < 9; n += 1) pauses.failed("a");
    expect(pauses.until("a")).to.be.above(Date.now());
    pauses.succeeded("a");
    expect(pauses.until("a")).to.equal(undefined);
    pauses.failed("a");
    expect(pauses.until("a")).to.equal(undefined);
  });
});
