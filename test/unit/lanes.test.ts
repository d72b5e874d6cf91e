import { expect } from "chai";
import { isLong, makeLanes } from "../../src/embedded/mongo/wire/lanes.ts";
import { pollUntil } from "../support/poll-until.ts";

describe("the lanes of the embedded store's messages", () => {
  it("let a short message pass all long ones that wait, and keep the order of a connection", async () => {
    const ran: string[] = [];
    const { admit } = makeLanes(() => undefined);
    admit({ connectionId: 1, isLong: true }, () => {
      ran.push("long 1");
      admit({ connectionId: 4, isLong: false }, () => ran.push("short 4, which came meanwhile"));
    });
    admit({ connectionId: 2, isLong: true }, () => ran.push("long 2"));
    admit({ connectionId: 1, isLong: false }, () => ran.push("short 1, after its connection's long one"));
    admit({ connectionId: 3, isLong: false }, () => ran.push("short 3"));
    expect(ran).to.deep.equal(["short 3"]);
    await pollUntil(() => ran.length === 5);
    expect(ran).to.deep.equal([
      "short 3",
      "long 1",
      "short 4, which came meanwhile",
      "long 2",
      "short 1, after its connection's long one",
    ]);
  });

  it("run one long message a turn of the event loop, and commit several together", async () => {
    const turns: number[] = [];
    let turn = 0;
    let commits = 0;
    const { admit } = makeLanes(() => {
      commits += 1;
    });
    for (const connectionId of [1, 2, 3]) admit({ connectionId, isLong: true }, () => turns.push(turn));
    while (turns.length < 3) {
      turn += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(new Set(turns)).to.have.property("size", 3);
    expect(commits).to.equal(1);
  });

  it("take for long what is large, continues a list, or changes all that it finds", () => {
    const command = { find: "things", filter: { _id: "a" } };
    expect(isLong(command, 200), "a find").to.equal(false);
    expect(isLong(command, 100_000), "a large message").to.equal(true);
    expect(isLong({ getMore: 1, collection: "things" }, 200), "the rest of a list").to.equal(true);
    expect(isLong({ delete: "things", deletes: [{ q: {}, limit: 1 }] }, 200), "deleteOne").to.equal(false);
    expect(isLong({ delete: "things", deletes: [{ q: {}, limit: 0 }] }, 200), "deleteMany").to.equal(true);
    expect(isLong({ update: "things", updates: [{ q: {}, u: {} }] }, 200), "updateOne").to.equal(false);
    expect(isLong({ update: "things", updates: [{ q: {}, u: {}, multi: true }] }, 200), "updateMany").to.equal(true);
  });

  it("run all that waits at the end, and commit it", () => {
    const ran: number[] = [];
    const { admit, drain } = makeLanes(() => ran.push(0));
    for (const connectionId of [1, 2]) admit({ connectionId, isLong: true }, () => ran.push(connectionId));
    drain();
    expect(ran, "and then commit").to.deep.equal([1, 2, 0]);
  });
});
