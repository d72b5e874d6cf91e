import { expect } from "chai";
import { makeTurns } from "../../api/middleware/rate-limit.ts";

describe("the turns of calls that anybody can make", () => {
  const later = Symbol("later");
  /** What a turn is that is there at once; else `later`. */
  const nowOf = (turn: Promise<boolean>) => Promise.race([turn, Promise.resolve(later)]);

  it("are at once while there are few", async () => {
    const takeTurn = makeTurns({ callsATurn: 2, turnMs: 60_000 });
    expect([await nowOf(takeTurn()), await nowOf(takeTurn())]).to.deep.equal([true, true]);
    expect(await nowOf(takeTurn())).to.equal(later);
  });

  it("come in the order of the calls", async () => {
    const takeTurn = makeTurns({ callsATurn: 2, turnMs: 1 });
    const begun: number[] = [];
    const turns = Array.from({ length: 9 }, () => takeTurn());
    await Promise.all(turns.map(async (turn, n) => (await turn) && begun.push(n)));
    expect(begun).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it("are refused when too many wait, and only then", async () => {
    const takeTurn = makeTurns({ callsATurn: 1, turnMs: 1, maxWaiting: 2 });
    const turns = [1, 2, 3, 4, 5].map(() => takeTurn());
    expect(await Promise.all(turns)).to.deep.equal([true, true, true, false, false]);
    expect(await takeTurn()).to.equal(true);
  });
});
