import { expect } from "chai";
import { gatherWrites } from "../../src/store/gather-writes.ts";

describe("gathered writes", () => {
  it("are one for what comes in one turn, and one for all that comes while another runs, in their order", async () => {
    const groups: number[][] = [];
    const { promise: isWritten, resolve } = Promise.withResolvers<void>();
    const { add: write } = gatherWrites<number>(
      async (items) => {
        groups.push([...items]);
        await isWritten;
      },
      { most: 3, everyMs: 0 },
    );
    const first = [write(1), write(2)];
    while (groups.length === 0) await new Promise(setImmediate);
    const later = [3, 4, 5, 6].map(write);
    resolve();
    await Promise.all([...first, ...later]);
    expect(groups).to.deep.equal([[1, 2], [3, 4, 5], [6]]);
  });

  it("are one, too, for what comes in some turns after the one before", async () => {
    const groups: number[][] = [];
    const { add: write } = gatherWrites<number>(async (items) => void groups.push([...items]), {
      most: 9,
      everyMs: 500,
    });
    await write(1);
    const later = [write(2)];
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    later.push(write(3));
    await Promise.all(later);
    expect(groups).to.deep.equal([[1], [2, 3]]);
  });

  it("begin without their wait when they are hurried, also by what comes while one runs", async () => {
    const groups: number[][] = [];
    const { add, hurry } = gatherWrites<number>(
      async (items) => {
        groups.push([...items]);
        if (items.includes(3)) hurry();
      },
      { most: 9, everyMs: 60_000 },
    );
    await add(1);
    const later = [add(2), add(3)];
    await new Promise(setImmediate);
    expect(groups).to.deep.equal([[1]]);
    hurry();
    await Promise.all(later);
    await add(4);
    expect(groups).to.deep.equal([[1], [2, 3], [4]]);
  });

  it("fail for those of their group alone", async () => {
    const { add: write } = gatherWrites<string>(
      async (items) => {
        if (items.includes("bad")) throw new Error("refused");
      },
      { most: 2, everyMs: 0 },
    );
    const written = await Promise.allSettled(["good", "bad", "better"].map(write));
    expect(written.map(({ status }) => status)).to.deep.equal(["rejected", "rejected", "fulfilled"]);
  });
});
