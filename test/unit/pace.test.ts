import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { makePace } from "../../src/isolation/pace.ts";

describe("the pace of a process", () => {
  const { signal } = new AbortController();
  let now: number;
  let pace: ReturnType<typeof makePace>;
  let atOnce: number;
  let mostAtOnce: number;
  beforeEach(() => {
    [now, atOnce, mostAtOnce] = [0, 0, 0];
    pace = makePace(() => now);
  });
  const part = (tookMs: number) => async () => {
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    await setImmediate();
    now += tookMs;
    atOnce -= 1;
  };
  const bulk = async (tenantId: string) => {
    await pace.share(tenantId, signal, part(400));
    mostAtOnce = 0;
    await Promise.all([1, 2, 3].map(() => pace.share(tenantId, signal, part(10))));
    return mostAtOnce;
  };

  it("runs one part of a tenant's work at a time while others work here, from the first one on", async () => {
    pace.begins("evil");
    pace.begins("acme");
    await Promise.all([1, 2, 3].map(() => pace.share("evil", signal, part(10))));
    expect(mostAtOnce).to.equal(1);
    expect(await bulk("evil")).to.equal(1);
  });

  it("leaves a tenant's work alone while nobody else works here, and does so again some seconds later", async () => {
    pace.begins("evil");
    expect(await bulk("evil")).to.equal(3);
    pace.begins("acme");
    now += 5_000;
    pace.begins("evil");
    expect(await bulk("evil")).to.equal(3);
  });

  it("makes who did much wait before the next part, and nobody who does little", async () => {
    pace.begins("evil");
    pace.begins("acme");
    const ends: string[] = [];
    const inTurn = (tenantId: string, tookMs: number) =>
      pace.share(tenantId, signal, part(tookMs)).then(() => ends.push(tenantId));
    await inTurn("evil", 400);
    const next = inTurn("evil", 10);
    await Promise.all([inTurn("acme", 10), inTurn("acme", 10)]);
    await next;
    expect(ends).to.deep.equal(["evil", "acme", "acme", "evil"]);
  });

  it("passes on what the work throws, and lets the next part run", async () => {
    pace.begins("evil");
    pace.begins("acme");
    await pace.share("evil", signal, part(400));
    const failed = pace.share("evil", signal, () => Promise.reject(new Error("lost")));
    expect(await failed.catch(({ message }) => message)).to.equal("lost");
    await pace.share("evil", signal, part(1));
  });
});
