import { expect } from "chai";
import { waitedForProcessor, watchRunningTime } from "../../src/isolation/running-time.ts";
import { pollUntil } from "../support/poll-until.ts";

describe("the running time of a child", () => {
  const overAfter = async (waitedMs: () => number, limitMs: number) => {
    let isOver = false;
    const watch = watchRunningTime(limitMs, () => (isOver = true), waitedMs);
    await pollUntil(() => isOver, { timeoutMs: 20_000, what: "the end of the time" });
    return watch.stop();
  };

  it("does not count the time in which the child waited for a processor", async () => {
    let asked = 0;
    const waited = () => Math.min(8, asked++) * 100; // others have the processor until it is asked for the eighth time
    await overAfter(waited, 200);
    expect(asked, "times that it was asked how long the child has waited").to.be.at.least(8);
  });

  it("ends in spite of it, at last", async () => {
    let asked = 0;
    await overAfter(() => asked++ * 10_000, 100);
    expect(asked).to.be.at.least(1);
  });

  it("is read of a process, and is nothing for one that is not there", () => {
    expect(waitedForProcessor(process.pid)).to.be.at.least(0);
    expect(waitedForProcessor(undefined)).to.equal(0);
    expect(waitedForProcessor(2 ** 22 + 1)).to.equal(0);
  });
});
