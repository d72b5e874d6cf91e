import { expect } from "chai";
import { makeMemory } from "../../src/isolation/memory.ts";

const user = { endIdle: () => false };

describe("the memory that the children of a process share", () => {
  /** Asks for memory, and answers whether it was given at once. */
  const ask = async (memory: ReturnType<typeof makeMemory>, mb: number) => {
    const asked: { leave?: () => void } = {};
    void memory.enter(user, mb).then((leave) => {
      asked.leave = leave;
    });
    await Promise.resolve();
    await Promise.resolve();
    return asked;
  };

  it("is never held beyond its sum, whatever is asked for", async () => {
    const memory = makeMemory(600);
    const held: (() => void)[] = [];
    const all = Array.from({ length: 200 }, (_, n) =>
      memory.enter(user, [200, 400, 200, 600, 128][n % 5] ?? 0).then((leave) => {
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
    const memory = makeMemory(600);
    const small = await ask(memory, 200);
    const huge = await ask(memory, 1_024);
    expect(huge.leave).to.equal(undefined);
    small.leave?.();
    await Promise.resolve();
    expect(memory.heldMb()).to.equal(1_024);
    expect((await ask(memory, 1)).leave).to.equal(undefined);
  });

  it("goes to who came first, so that a large one is not passed by small ones for ever", async () => {
    const memory = makeMemory(600);
    const first = await ask(memory, 200);
    const large = await ask(memory, 600);
    const small = await ask(memory, 200);
    expect([large.leave, small.leave]).to.deep.equal([undefined, undefined]);
    first.leave?.();
    await Promise.resolve();
    expect([memory.heldMb(), small.leave]).to.deep.equal([600, undefined]);
  });

  it("is taken back from who is idle, and from nobody if there is room", async () => {
    const memory = makeMemory(600);
    const ended: string[] = [];
    const leaves: (() => void)[] = [];
    const lender = {
      endIdle() {
        ended.push("one");
        setImmediate(() => leaves.shift()?.());
        return true;
      },
    };
    for (const mb of [200, 200]) leaves.push(await memory.enter(lender, mb));
    await memory.enter(user, 200);
    expect(ended).to.deep.equal([]);
    await memory.enter(user, 400);
    expect(ended).to.have.lengthOf(2);
    expect(memory.heldMb()).to.equal(600);
  });
});
