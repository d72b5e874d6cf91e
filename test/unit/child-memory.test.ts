import { expect } from "chai";
import { makeMemory } from "../../src/isolation/memory.ts";

const user = (mb: number) => ({ mb, endIdle: () => false });

describe("the memory that the children of a process share", () => {
  /** Asks for memory, and answers whether it was given at once. */
  const ask = async (memory: ReturnType<typeof makeMemory>, mb: number) => {
    const asked: { leave?: () => void } = {};
    void memory.enter(user(mb)).then((leave) => {
      asked.leave = leave;
    });
    await Promise.resolve();
    await Promise.resolve();
    return asked;
  };

  it("is never held beyond its sum, whatever is asked for", async () => {
    const memory = makeMemory({ totalMb: 600, reservedMb: 0 });
    const held: (() => void)[] = [];
    const all = Array.from({ length: 200 }, (_, n) =>
      memory.enter(user([200, 400, 200, 600, 128][n % 5] ?? 0)).then((leave) => {
        held.push(leave);
        expect(memory.heldMb()).to.be.at.most(600);
      }),
    );
    while (held.length > 0 || memory.heldMb() > 0) {
      await new Promise(setImmediate);
      held.splice(Math.floor(held.length / 2), 1)[0]?.();
    }
    await Promise.all(all);
  });

  it("is had alone by one that needs more than all of it", async () => {
    const memory = makeMemory({ totalMb: 600, reservedMb: 0 });
    const small = await ask(memory, 200);
    const huge = await ask(memory, 1_024);
    expect(huge.leave).to.equal(undefined);
    small.leave?.();
    await Promise.resolve();
    expect(memory.heldMb()).to.equal(1_024);
    expect((await ask(memory, 1)).leave).to.equal(undefined);
  });

  it("goes to who came first, so that a large one is not passed by small ones for ever", async () => {
    const memory = makeMemory({ totalMb: 600, reservedMb: 0 });
    const first = await ask(memory, 200);
    const large = await ask(memory, 600);
    const small = await ask(memory, 200);
    expect([large.leave, small.leave]).to.deep.equal([undefined, undefined]);
    first.leave?.();
    await Promise.resolve();
    expect([memory.heldMb(), small.leave]).to.deep.equal([600, undefined]);
  });

  it("has a part that small ones need not wait for, whatever large ones work and wait", async () => {
    const memory = makeMemory({ totalMb: 800, reservedMb: 200 });
    const [whole, large] = [await ask(memory, 600), await ask(memory, 400)];
    const [small, second] = [await ask(memory, 200), await ask(memory, 200)];
    expect([large.leave, second.leave]).to.deep.equal([undefined, undefined]);
    small.leave?.();
    await Promise.resolve();
    expect(memory.heldMb(), "the second one in the place of the first").to.equal(800);
    whole.leave?.();
    await Promise.resolve();
    expect(memory.heldMb(), "the large one beside it").to.equal(600);
  });

  it("is had alone also by one that small ones could pass", async () => {
    const memory = makeMemory({ totalMb: 800, reservedMb: 200 });
    const small = await ask(memory, 200);
    expect((await ask(memory, 1_024)).leave).to.equal(undefined);
    expect((await ask(memory, 100)).leave).to.equal(undefined);
    small.leave?.();
    await Promise.resolve();
    expect(memory.heldMb()).to.equal(1_024);
  });

  it("is taken back from who is idle, and from nobody if there is room", async () => {
    const memory = makeMemory({ totalMb: 600, reservedMb: 0 });
    const ended: string[] = [];
    const leaves: (() => void)[] = [];
    const lender = {
      mb: 200,
      endIdle() {
        ended.push("one");
        setImmediate(() => leaves.shift()?.());
        return true;
      },
    };
    for (let n = 0; n < 2; n++) leaves.push(await memory.enter(lender));
    await memory.enter(user(200));
    expect(ended).to.deep.equal([]);
    await memory.enter(user(400));
    expect(ended).to.have.lengthOf(2);
    expect(memory.heldMb()).to.equal(600);
  });
});
