import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { makeJobTurns } from "../../src/jobs/jobs.ts";
import { pollUntil } from "../support/poll-until.ts";

/** Works that end when the test ends them, in the order of their begin. */
function makeWorks() {
  const running: { tenantId: string; end: (error?: Error) => void }[] = [];
  const work = (tenantId: string) => () =>
    new Promise<void>((resolve, reject) => {
      running.push({ tenantId, end: (error) => (error ? reject(error) : resolve()) });
    });
  return { running, work };
}

describe("the turns of calls for jobs", () => {
  it("runs all calls of a tenant that is alone", async () => {
    const { running, work } = makeWorks();
    const inTurn = makeJobTurns();
    const calls = Array.from({ length: 10 }, () => inTurn("acme", work("acme")));
    await setImmediate();
    expect(running).to.have.length(10);
    for (const { end } of running) end();
    await Promise.all(calls);
  });

  it("runs two calls of a tenant at a time while another one works, and that one's at once", async () => {
    const { running, work } = makeWorks();
    const inTurn = makeJobTurns();
    const calls = ["acme", ...Array.from({ length: 10 }, () => "evil"), "acme"].map((tenantId) =>
      inTurn(tenantId, work(tenantId)),
    );
    await setImmediate();
    expect(running.map(({ tenantId }) => tenantId)).to.deep.equal(["acme", "evil", "evil", "acme"]);
    let most = 0;
    for (let ended = 0; ended < calls.length; ended += 1) {
      most = Math.max(most, running.length - ended);
      running[ended]?.end();
      await setImmediate();
    }
    await Promise.all(calls);
    expect(most, "at once").to.equal(4);
  });

  it("gives the turn of a call that failed to the next, and reports its error", async () => {
    const { running, work } = makeWorks();
    const inTurn = makeJobTurns();
    const other = inTurn("acme", work("acme"));
    const [first, ...further] = Array.from({ length: 3 }, () => inTurn("evil", work("evil")));
    const failure = first?.catch((error: Error) => error.message);
    await setImmediate();
    expect(running, "before it failed").to.have.length(3);
    running[1]?.end(new Error("the store is unavailable"));
    expect(await failure).to.equal("the store is unavailable");
    await setImmediate();
    expect(running).to.have.length(4);
    for (const { end } of running) end();
    await Promise.all([other, ...further]);
  });

  it("lets a call go on that has waited long enough", async () => {
    const { running, work } = makeWorks();
    const inTurn = makeJobTurns({ maxWaitMs: 20 });
    const calls = ["acme", "evil", "evil"].map((tenantId) => inTurn(tenantId, work(tenantId)));
    const late = inTurn("evil", work("evil"));
    await setImmediate();
    expect(running, "at first").to.have.length(3);
    await pollUntil(() => running.length === 4, { what: "the call that waited" });
    for (const { end } of running) end();
    await Promise.all([...calls, late]);
  });
});
