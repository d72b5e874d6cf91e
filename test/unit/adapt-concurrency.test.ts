import { expect } from "chai";
import { nextConcurrency } from "../../workers/start-workers.ts";

describe("how many computing jobs a worker runs at once", () => {
  const then = (busy: number, concurrency: number) => nextConcurrency({ concurrency, most: 4, busy });

  it("falls to one while the processor has no time left, and never below", () => {
    expect([then(0.99, 4), then(0.99, 2), then(0.99, 1)]).to.deep.equal([3, 1, 1]);
  });

  it("rises again when there is room, up to what the queue allows", () => {
    expect([then(0.1, 1), then(0.1, 3), then(0.1, 4)]).to.deep.equal([2, 4, 4]);
  });

  it("stays in between, so that it does not swing", () => {
    expect([then(0.6, 1), then(0.6, 3)]).to.deep.equal([1, 3]);
  });
});
