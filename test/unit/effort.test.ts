import { expect } from "chai";
import { makeEffort } from "../../src/isolation/pace.ts";

describe("the effort of owners", () => {
  it("is high after much at once, and is forgotten in ten times its time", () => {
    let now = 0;
    const effort = makeEffort(() => now);
    effort.add("evil", 500);
    effort.add("acme", 200);
    expect([effort.isHigh("evil"), effort.isHigh("acme"), effort.isHigh("nobody")]).to.deep.equal([true, false, false]);
    now = 1_900;
    expect(effort.isHigh("evil")).to.equal(true);
    now = 2_100;
    expect(effort.isHigh("evil")).to.equal(false);
    effort.add("evil", 20);
    expect(effort.isHigh("evil")).to.equal(true);
  });

  it("stays low for who takes less than a tenth of the time, for however long", () => {
    let now = 0;
    const effort = makeEffort(() => now);
    for (; now < 3_600_000; now += 1_000) effort.add("acme", 90);
    expect(effort.isHigh("acme")).to.equal(false);
  });
});
