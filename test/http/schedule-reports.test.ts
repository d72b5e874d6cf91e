import { expect } from "chai";
import { loadConfig } from "../../src/config/config.ts";
import { openPlatform, type Platform } from "../../src/platform.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Firing = { slotAt: string; status: string; missed?: number; job?: { jobId: string; status: string } };

const never = new AbortController().signal;

/** Failures of schedulers that were reported in public, each as its users met it. */
describe("what schedulers of others were reported to do, and this one does not:", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let quiet: string;
  let slow: string;
  const others: Platform[] = [];

  before(async () => {
    // No sweep runs by itself: the test says which process looks, and when.
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.owner });
    const make = async (steps: object[]) =>
      (await client.post("/workflows", { name: "Reported", steps })).string("workflowId");
    // biome-ignore lint/suspicious/noThenProperty: a condition's branch
    quiet = await make([{ type: "condition", expression: "true", then: [] }]);
    slow = await make([{ type: "human_approval", assigneeRole: "owner" }]);
  });
  after(async () => {
    for (const other of others) await other.close();
    await test.close();
  });

  /** Another process on the same store, as a further replica, or the same one after a restart. */
  const another = async () => {
    const platform = await openPlatform(loadConfig(test.env), { name: "other", logger: test.platform.logger });
    others.push(platform);
    return platform;
  };
  const make = async (more: object) => {
    const made = await client.post("/schedules", { name: "Weekly", target: { workflowId: quiet }, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.string("scheduleId");
  };
  const firings = async (id: string) => (await client.get(`/schedules/${id}/firings`)).at("data") as Firing[];
  const nextAt = async (id: string) => (await client.get(`/schedules/${id}`)).at("nextAt");
  const comeDue = async (id: string, agoMs = 1_000) => {
    const { schedules } = test.platform.store;
    const schedule = await schedules.get(await tenantOf(test), id);
    const slotAt = new Date(Date.now() - agoMs);
    if (schedule) await schedules.advance(schedule, { slotAt, dueAt: slotAt });
    return slotAt.toISOString();
  };
  const jobsOf = async () => ((await client.get("/jobs?kind=workflow&limit=200")).at("data") as unknown[]).length;

  // getpaseo/paseo 2819
  it("a slow job makes its slot fire twice, and the one after it never", async () => {
    const id = await make({ cron: "0 6 * * 1", timezone: "Europe/Prague", target: { workflowId: slow } });
    const next = await nextAt(id);
    const slotAt = await comeDue(id);
    for (let look = 0; look < 5; look += 1) await test.platform.automation.sweep(never);
    expect((await firings(id)).map((firing) => firing.slotAt)).to.deep.equal([slotAt]);
    expect(await nextAt(id), "the very next week").to.equal(next);
  });

  // agentscope-ai/agentscope 2223
  it("each replica starts the job of the same slot", async () => {
    const id = await make({ cron: "0 9 * * *" });
    const replicas = [test.platform, await another(), await another()];
    const before = await jobsOf();
    await comeDue(id);
    await Promise.all(replicas.flatMap(({ automation }) => [automation.sweep(never), automation.sweep(never)]));
    expect(await firings(id)).to.have.length(1);
    expect(await jobsOf()).to.equal(before + 1);
  });

  // openclaw/openclaw 42640
  it("what has run before a restart runs again after it, as if it had been missed", async () => {
    const id = await make({ cron: "0 22 * * *", timezone: "America/Santiago" });
    const next = await nextAt(id);
    await comeDue(id, 30 * 60_000);
    await test.platform.automation.sweep(never);
    const before = await jobsOf();
    const restarted = await another();
    for (let look = 0; look < 3; look += 1) await restarted.automation.sweep(never);
    expect(await firings(id)).to.have.length(1);
    expect([await jobsOf(), await nextAt(id)]).to.deep.equal([before, next]);
  });

  // NousResearch/hermes-agent, of its scheduler: a time of day that moves with daylight saving, and one that fires at two hours
  it("a time of day moves by an hour when the clocks do", async () => {
    const id = await make({ cron: "0 9 * * *", timezone: "America/Toronto" });
    const shown = (await client.get(`/schedules/${id}`)).at("nextTimes") as string[];
    const hours = shown.map((at) =>
      new Intl.DateTimeFormat("en-GB", { timeZone: "America/Toronto", hour: "2-digit", hour12: false }).format(
        new Date(at),
      ),
    );
    expect(new Set(hours)).to.deep.equal(new Set(["09"]));
  });

  // NousResearch/hermes-agent, of its scheduler: a run that ended badly takes the time after it with it
  it("a job that was stopped has the next time left out, without a trace", async () => {
    const id = await make({ cron: "30 1 * * *", timezone: "America/Monterrey", target: { workflowId: slow } });
    const slots: string[] = [];
    for (let day = 0; day < 3; day += 1) {
      slots.unshift(await comeDue(id, 3_000 - day * 1_000));
      await test.platform.automation.sweep(never);
      const [firing] = await firings(id);
      expect((await client.post(`/jobs/${firing?.job?.jobId}/cancel`)).status).to.equal(200);
    }
    const made = (await firings(id)).map(({ slotAt, status, job }) => [slotAt, status, job?.status]);
    expect(made).to.deep.equal(slots.map((slotAt) => [slotAt, "started", "cancelled"]));
  });

  // NousResearch/hermes-agent, of its scheduler: what is due behind a slow one is skipped
  it("of several that are due at once, those behind a slow one are left out", async () => {
    const ids = await Promise.all(
      [slow, quiet, slow, quiet].map((workflowId) => make({ target: { workflowId }, cron: "0 8 * * *" })),
    );
    for (const id of ids) await comeDue(id, 200_000);
    await test.platform.automation.sweep(never);
    for (const id of ids) expect((await firings(id)).map(({ status }) => status)).to.deep.equal(["started"]);
  });

  // tinyhumansai/opencompany 241
  it("a weekly firing is lost when the service restarts across its time", async () => {
    const id = await make({ cron: "0 9 * * MON" });
    await comeDue(id, 2 * 3_600_000);
    const restarted = await another();
    await restarted.automation.sweep(never);
    const [firing] = await firings(id);
    expect(firing).to.include({ status: "started" });
    const none = await make({ cron: "0 9 * * MON", catchUp: "none" });
    await comeDue(none, 2 * 3_600_000);
    await restarted.automation.sweep(never);
    expect((await firings(none))[0], "and nothing reports it").to.include({ status: "missed" });
  });

  it("a process that dies right after it has taken a slot takes it with it", async () => {
    const id = await make({ cron: "0 7 * * *" });
    const tenantId = await tenantOf(test);
    const { firings: store } = test.platform.store;
    await comeDue(id);
    const dying = await another();
    const { jobs } = dying;
    jobs.submit = async () => {
      throw new Error("the process has died");
    };
    await dying.automation.sweep(never);
    const [begun] = (await store.list(tenantId, id, { limit: 1 })).data;
    expect(begun?.status).to.equal("starting");
    if (begun) await store.putOff(begun, { status: "starting", attempts: 1, nextAt: new Date() });
    await pollUntil(
      async () => {
        await test.platform.automation.sweep(never);
        return (await firings(id))[0]?.status === "started" ? true : null;
      },
      { what: "the firing, continued" },
    );
    expect(await firings(id)).to.have.length(1);
  });
});
