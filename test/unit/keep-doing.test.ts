import { expect } from "chai";
import { keepDoing } from "../../src/lib/keep-doing.ts";

describe("work that is done repeatedly", () => {
  it("goes on after a failure, with pauses that double up to the longest", async () => {
    const pauses: number[] = [];
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const failing = async () => {
      throw new Error("not yet");
    };
    const onError = (error: unknown, waitMs: number) => {
      expect(error).to.have.property("message", "not yet");
      if (pauses.push(waitMs) === 4) resolve();
    };
    const loop = keepDoing(failing, { everyMs: 1, atMostMs: 4, onError });
    await enough;
    await loop.stop();
    expect(pauses).to.deep.equal([2, 4, 4, 4]);
  });

  it("pauses as at first once it has succeeded", async () => {
    const pauses: number[] = [];
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    let turn = 0;
    const work = async () => {
      turn += 1;
      if (turn !== 3) throw new Error("not yet");
    };
    const onError = (_error: unknown, waitMs: number) => {
      if (pauses.push(waitMs) === 3) resolve();
    };
    const loop = keepDoing(work, { everyMs: 1, atMostMs: 8, onError });
    await enough;
    await loop.stop();
    expect(pauses).to.deep.equal([2, 4, 2]);
  });

  it("is stopped once the work under way has ended, and is not begun again", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let times = 0;
    let isStopped = false;
    const loop = keepDoing(
      () => {
        times += 1;
        begin();
        return held;
      },
      { everyMs: 1, onError: () => undefined },
    );
    await begun;
    const stopped = loop.stop().then(() => {
      isStopped = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isStopped).to.equal(false);
    release();
    await stopped;
    expect(times).to.equal(1);
  });
});
