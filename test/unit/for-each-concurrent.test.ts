import { expect } from "chai";
import { forEachConcurrent } from "../../src/lib/for-each-concurrent.ts";
import { pollUntil } from "../support/poll-until.ts";

describe("concurrent work", () => {
  const unhandled: unknown[] = [];
  const listen = (reason: unknown) => unhandled.push(reason);
  before(() => process.on("unhandledRejection", listen));
  after(() => process.off("unhandledRejection", listen));

  it("that fails while the next result is pending rejects with its failure, and does not end the process", async () => {
    const { promise: slow, resolve: arrive } = Promise.withResolvers<void>();
    const seen: number[] = [];
    let isAsked = false;
    async function* results() {
      yield 1;
      isAsked = true;
      await slow;
      yield 2;
      yield 3;
    }
    const working = forEachConcurrent(results(), 8, async (item) => {
      seen.push(item);
      if (item === 1) throw new Error("the store is away");
    }).catch((error: unknown) => error);
    await pollUntil(() => isAsked, { what: "the question for the next result" });
    await new Promise((resolve) => setImmediate(resolve));
    arrive();
    expect(await working).to.have.property("message", "the store is away");
    expect(seen).to.deep.equal([1]);
    expect(unhandled).to.deep.equal([]);
  });

  it("is never on more items than allowed, and comes to all of them", async () => {
    let underWay = 0;
    let most = 0;
    const seen: number[] = [];
    await forEachConcurrent([1, 2, 3, 4, 5], 2, async (item) => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= 1;
      seen.push(item);
    });
    expect(most).to.equal(2);
    expect(seen.toSorted()).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it("that fails at the last result rejects with its failure, when the others have ended", async () => {
    let ended = 0;
    const working = forEachConcurrent([1, 2, 3], 8, async (item) => {
      if (item === 3) throw new Error("the last one");
      await new Promise((resolve) => setImmediate(resolve));
      ended += 1;
    });
    expect(await working.catch((error: unknown) => error)).to.have.property("message", "the last one");
    expect(ended).to.equal(2);
  });
});
