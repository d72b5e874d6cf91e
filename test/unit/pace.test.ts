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

  it("begins four jobs of a tenant that did much, on each queue, and more when some have ended", async () => {
    pace.begins("evil");
    pace.begins("acme");
    await pace.share("evil", signal, part(400));
    const begun: string[] = [];
    const enter = async (name: string, queue = "runs") => {
      const leave = await pace.enterJob("evil", queue, signal);
      begun.push(name);
      return leave;
    };
    const [first] = await Promise.all(["one", "two", "three", "four"].map((name) => enter(name)));
    const fifth = enter("five");
    await enter("other", "documents");
    expect(begun).to.deep.equal(["one", "two", "three", "four", "other"]);
    first?.();
    await fifth;
  });

  it("lets all jobs begin of a tenant that did little, or is alone", async () => {
    const many = Array.from({ length: 10 }, (_, n) => n);
    const enterMany = () => Promise.all(many.map(() => pace.enterJob("evil", "runs", signal)));
    pace.begins("evil");
    await pace.share("evil", signal, part(400));
    for (const leave of await enterMany()) leave();
    now += 10_000;
    pace.begins("acme");
    await pace.share("evil", signal, part(10));
    await enterMany();
  });

  it("begins four runs inside of one job at each depth, and those of another job beside them", async () => {
    const begun: string[] = [];
    const enter = async (name: string, jobId: string, depth: number) => {
      const leave = await pace.enterInner({ tenantId: "evil", jobId, depth }, signal);
      begun.push(name);
      return leave;
    };
    const [first] = await Promise.all(["one", "two", "three", "four"].map((name) => enter(name, "job", 2)));
    const fifth = enter("five", "job", 2);
    await Promise.all([enter("below", "job", 3), enter("beside", "another", 2)]);
    expect(begun).to.deep.equal(["one", "two", "three", "four", "below", "beside"]);
    first?.();
    await fifth;
  });

  it("begins four runs inside of all jobs of a tenant while others work here, sixteen while it is alone", async () => {
    const countOf = async (tenantId: string) => {
      let begun = 0;
      const { signal: until, abort } = abortable();
      const entering = Array.from({ length: 40 }, async (_, n) => {
        const leave = await pace.enterInner({ tenantId, jobId: `${tenantId} ${n}`, depth: 2 }, until);
        begun += 1;
        return leave;
      });
      const settled = Promise.allSettled(entering);
      await setImmediate();
      const atOnce = begun;
      abort();
      for (const one of await settled) if (one.status === "fulfilled") one.value();
      return atOnce;
    };
    pace.begins("evil");
    expect(await countOf("evil")).to.equal(16);
    pace.begins("acme");
    expect(await countOf("evil")).to.equal(4);
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

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error("enough")) };
}
