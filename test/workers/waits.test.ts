import { expect } from "chai";
import { derivedId, newId } from "../../src/lib/ids.ts";
import { pollUntil } from "../support/poll-until.ts";
import { makeScriptedJobs, scriptedQueue as queue } from "../support/scripted-queue.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { takeTurn } from "../support/worker-turn.ts";

type Event = { name: string; match?: Record<string, unknown> };
const FAR = 86_400_000;

/** No worker runs: a job goes on when the test takes its turn, and nothing is swept unless the test asks. */
describe("a job that waits", function () {
  this.timeout(60_000);
  const scripted = makeScriptedJobs();
  let test: TestPlatform;
  let tenantId: string;
  before(async () => {
    test = await startPlatform({ workers: false, extra: [scripted.work] });
    tenantId = await tenantOf(test);
  });
  after(() => test.close());

  const waitIdOf = (jobId: string, place = 1) => derivedId("wait", { at: new Date(0), from: `${jobId}-${place}` });
  /** A job that waits for each of these, and ends with what has ended them. */
  const waiting = async (waits: { ms?: number; event?: Event }[], more: { tenant?: string } = {}) => {
    const job = await scripted.submit(test.platform, more.tenant ?? tenantId, async (context) => {
      const begun = await Promise.all(
        waits.map(({ ms = FAR, event }, place) =>
          test.platform.waits.begin({
            ...{ tenantId: context.tenantId, jobId: context.jobId, waitId: waitIdOf(context.jobId, place + 1) },
            ...{ until: new Date(Date.now() + ms), ...(event ? { event } : {}) },
          }),
        ),
      );
      const pending = begun.filter(({ status }) => status === "pending");
      if (pending.length > 0) throw test.platform.waits.suspend(pending);
      return begun.map(({ status, data, eventId }) => [status, data ?? null, eventId ?? null]);
    });
    const turn = () => takeTurn(test.platform, { queue, jobId: job._id }, { works: [scripted.work] });
    return { jobId: job._id, turn };
  };
  const find = async (jobId: string) => (await test.platform.store.jobs.findById(jobId)) ?? expect.fail("no job");
  const stateOf = async (jobId: string) => (await find(jobId)).status;
  const isQueued = (jobId: string) => pollUntil(async () => (await stateOf(jobId)) === "queued");
  const deliver = (name: string, data: unknown, more: object = {}) =>
    test.platform.waits.deliverEvent({ tenantId, name, data, eventId: newId("request"), ...more });

  it("holds neither a lease nor a job of BullMQ, and goes on at its time", async () => {
    const { jobId, turn } = await waiting([{ ms: 300 }]);
    expect(await turn()).to.deep.equal({ end: "done" });
    const { status, lease, checkAt, attempts } = await find(jobId);
    expect({ status, lease, checkAt, attempts }).to.deep.equal({
      ...{ status: "awaiting", lease: undefined, checkAt: undefined, attempts: 0 },
    });
    const { waitId, store } = { waitId: waitIdOf(jobId), store: test.platform.store };
    await isQueued(jobId); // by the timer of the process
    // The job is queued a moment before its wait is settled.
    const ended = await pollUntil(async () => {
      const wait = await store.waits.get(tenantId, waitId);
      return wait?.unsettledSince === undefined ? wait : null;
    });
    expect(ended).to.include({ status: "over" });
    expect(Number(ended.endedAt) - Number(ended.expiresAt), "late by").to.be.within(-5, 250);
    expect(await turn()).to.deep.equal({ end: "done" });
    expect((await find(jobId)).result).to.deep.equal([["over", null, null]]);
  });

  it("goes on by a sweep when the process that has begun the wait is gone", async () => {
    const { jobId, turn } = await waiting([{ ms: 400 }]);
    await turn();
    test.platform.waits.close(); // its timers
    await test.platform.store.waits.get(tenantId, waitIdOf(jobId));
    await pollUntil(async () => {
      await test.platform.waits.sweep();
      test.platform.waits.close();
      return (await stateOf(jobId)) === "queued";
    });
    await turn();
    expect((await find(jobId)).result).to.deep.equal([["over", null, null]]);
  });

  it("goes on when one of several ends, and waits for the others again", async () => {
    const { jobId, turn } = await waiting([{ event: { name: "a" } }, { event: { name: "b" } }]);
    await turn();
    expect(await deliver("b", { n: 1 })).to.equal(1);
    expect(await stateOf(jobId)).to.equal("queued");
    await turn();
    expect(await stateOf(jobId)).to.equal("awaiting");
    await deliver("a", null, { eventId: "evt_a" });
    await turn();
    const result = (await find(jobId)).result as unknown[][];
    expect(result[0]).to.deep.equal(["over", "null", "evt_a"]);
    expect(result[1]?.slice(0, 2)).to.deep.equal(["over", '{"n":1}']);
  });

  it("goes on by what ended while it was about to wait", async () => {
    const { suspend } = test.platform.waits;
    const { jobId, turn } = await waiting([{ event: { name: "early" } }]);
    test.platform.waits.suspend = (pending) => {
      const suspended = suspend(pending);
      const { isOver } = suspended;
      return Object.assign(suspended, {
        async isOver() {
          await deliver("early", 1);
          return isOver();
        },
      });
    };
    try {
      expect((await turn()).end).to.equal("done"); // the event's own wake was first
    } finally {
      test.platform.waits.suspend = suspend;
    }
    await isQueued(jobId);
    await turn();
    expect(await stateOf(jobId)).to.equal("completed");
  });

  it("goes on by the next sweep when the process died between the end and the wake", async () => {
    const { jobId, turn } = await waiting([{ event: { name: "died" } }]);
    await turn();
    const { waits } = test.platform.store;
    const wait = (await waits.get(tenantId, waitIdOf(jobId))) ?? expect.fail();
    await waits.end(wait, { status: "over", eventId: "evt_died" });
    await test.platform.waits.sweep();
    expect(await stateOf(jobId), "its own process does it in the first seconds").to.equal("awaiting");
    await waits.putOff((await waits.get(tenantId, wait._id)) ?? wait, undefined);
    const { unsettled } = waits;
    waits.unsettled = (_before, limit) => unsettled(new Date(Date.now() + 1_000), limit);
    try {
      await test.platform.waits.sweep();
    } finally {
      waits.unsettled = unsettled;
    }
    expect(await stateOf(jobId)).to.equal("queued");
    expect(await waits.get(tenantId, wait._id)).not.to.have.property("unsettledSince");
    expect(await deliver("died", 1, { eventId: "evt_other" }), "it has ended").to.equal(0);
  });

  it("is woken again until a worker has taken it since", async () => {
    const { jobId, turn } = await waiting([{ event: { name: "busy" } }]);
    await turn();
    const { jobs, waits } = test.platform.store;
    const lease = (token: string) => ({ workerId: "w", token, expiresAt: new Date(Date.now() + FAR) });
    await jobs.change({ jobId, from: ["awaiting"] }, { $set: { status: "running", lease: lease("first") } });
    await deliver("busy", 1);
    const waitId = waitIdOf(jobId);
    const settledAfter = async (token: string) => {
      await jobs.change({ jobId, from: ["running"] }, { $set: { lease: lease(token) } });
      const { unsettled } = waits;
      waits.unsettled = (_before, limit) => unsettled(new Date(Date.now() + 1_000), limit);
      await test.platform.waits.sweep();
      waits.unsettled = unsettled;
      return (await waits.get(tenantId, waitId))?.unsettledSince === undefined;
    };
    expect(await settledAfter("first")).to.equal(false);
    expect(await settledAfter("second")).to.equal(true);
  });

  it("is woken by those events alone that fit, of its tenant, once, after it has begun to wait", async () => {
    const match = { order: { id: "7", lines: [1, 2] }, isPaid: true };
    const jobs = {
      exact: await waiting([{ event: { name: "paid", match } }]),
      any: await waiting([{ event: { name: "paid" } }]),
      other: await waiting([{ event: { name: "paid", match: { order: { id: "8" } } } }]),
      list: await waiting([{ event: { name: "paid", match: { tags: ["a"] } } }]),
      empty: await waiting([{ event: { name: "paid", match: {} } }]),
      proto: await waiting([{ event: { name: "paid", match: { constructor: {} } } }]),
      named: await waiting([{ event: { name: "paid!" } }]),
      foreign: await waiting([{ event: { name: "paid" } }], { tenant: newId("tenant") }),
    };
    for (const { turn } of Object.values(jobs)) await turn();
    const woken = async () => {
      const states = Object.entries(jobs).map(async ([name, { jobId }]) => [name, await stateOf(jobId)] as const);
      return (await Promise.all(states)).flatMap(([name, state]) => (state === "queued" ? [name] : []));
    };
    expect(
      await deliver("paid", { order: { id: "7" } }, { at: new Date(Date.now() - FAR) }),
      "it came before",
    ).to.equal(0);
    const data = { isPaid: true, more: null, order: { lines: [1, 2], id: "7", x: {} } };
    expect(await deliver("paid", { ...data, isPaid: "true" })).to.equal(2);
    expect(await woken()).to.deep.equal(["any", "empty"]);
    expect(await deliver("paid", data)).to.equal(1);
    expect(await deliver("paid", data)).to.equal(0);
    expect(await woken()).to.deep.equal(["exact", "any", "empty"]);
    const wide = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`f${n}`, n]));
    expect(await deliver("paid", { ...wide, tags: ["a"], order: { id: "8" } }), "with many fields").to.equal(2);
    for (const odd of [null, "x", 7, [], undefined]) expect(await deliver("paid", odd)).to.equal(0);
  });

  it("expires when its event does not come in time", async () => {
    const { jobId, turn } = await waiting([{ ms: 200, event: { name: "never" } }]);
    await turn();
    await isQueued(jobId);
    await turn();
    expect((await find(jobId)).result).to.deep.equal([["expired", null, null]]);
    expect(await deliver("never", 1)).to.equal(0);
  });

  it("keeps what an event says, unless that is too long", async () => {
    for (const [length, expected] of [
      [10, '"xxxxxxxxxx"'],
      [70_000, '{"tooLong":70002}'],
    ] as const) {
      const { jobId, turn } = await waiting([{ event: { name: "long" } }]);
      await turn();
      await deliver("long", "x".repeat(length));
      await turn();
      expect((await find(jobId)).result).to.have.nested.property("[0][1]", expected);
    }
  });

  it("may be cancelled, and is not woken then", async () => {
    const { jobId, turn } = await waiting([{ event: { name: "cancelled" } }]);
    await turn();
    await test.platform.jobs.cancel(tenantId, jobId);
    expect(await deliver("cancelled", 1)).to.equal(1);
    expect(await stateOf(jobId)).to.equal("cancelled");
    expect(await test.platform.store.waits.get(tenantId, waitIdOf(jobId))).not.to.have.property("unsettledSince");
  });
});
