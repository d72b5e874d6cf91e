import { expect } from "chai";
import { makeLanes } from "../../src/embedded/mongo/wire/lanes.ts";
import { pollUntil } from "../support/poll-until.ts";

const LARGE = 100_000;
const SMALL = 200;

describe("the lanes of the embedded store's messages", () => {
  it("let a small message pass all large ones that wait, and keep the order of a connection", async () => {
    const ran: string[] = [];
    const { admit } = makeLanes(() => undefined);
    admit({ connectionId: 1, bytes: LARGE }, () => {
      ran.push("large 1");
      admit({ connectionId: 4, bytes: SMALL }, () => ran.push("small 4, which came meanwhile"));
    });
    admit({ connectionId: 2, bytes: LARGE }, () => ran.push("large 2"));
    admit({ connectionId: 1, bytes: SMALL }, () => ran.push("small 1, after its connection's large one"));
    admit({ connectionId: 3, bytes: SMALL }, () => ran.push("small 3"));
    expect(ran).to.deep.equal(["small 3"]);
    await pollUntil(() => ran.length === 5);
    expect(ran).to.deep.equal([
      "small 3",
      "large 1",
      "small 4, which came meanwhile",
      "large 2",
      "small 1, after its connection's large one",
    ]);
  });

  it("run one large message a turn of the event loop, and commit several together", async () => {
    const turns: number[] = [];
    let turn = 0;
    let commits = 0;
    const { admit } = makeLanes(() => {
      commits += 1;
    });
    for (const connectionId of [1, 2, 3]) admit({ connectionId, bytes: LARGE }, () => turns.push(turn));
    while (turns.length < 3) {
      turn += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(new Set(turns)).to.have.property("size", 3);
    expect(commits).to.equal(1);
  });

  it("run all that waits at the end, and commit it", () => {
    const ran: number[] = [];
    const { admit, drain } = makeLanes(() => ran.push(0));
    for (const connectionId of [1, 2]) admit({ connectionId, bytes: LARGE }, () => ran.push(connectionId));
    drain();
    expect(ran, "and then commit").to.deep.equal([1, 2, 0]);
  });
});
