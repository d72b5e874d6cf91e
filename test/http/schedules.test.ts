import { expect } from "chai";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Firing = {
  firingId: string;
  slotAt: string;
  status: string;
  job?: { jobId: string; status: string };
  missed?: number;
  manual?: boolean;
  documents?: number;
  error?: { code: string };
};

const daily = { name: "Daily", cron: "0 9 * * *", timezone: "Europe/Berlin" };
/** A workflow that does nothing, and one that waits for a person. */
// biome-ignore lint/suspicious/noThenProperty: a condition's branch
const quiet = [{ type: "condition", expression: "input.hour == 9", then: [] }];
const waiting = [{ type: "human_approval", assigneeRole: "owner", message: "Go on?" }];

describe("a schedule", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let workflowId: string;

  before(async () => {
    test = await startPlatform({ env: { RECONCILE_EVERY_MS: "100" } });
    client = makeClient({ url: test.url, key: test.keys.member });
    workflowId = await makeWorkflow(quiet);
  });
  after(() => test.close());

  const makeWorkflow = async (steps: object[]) =>
    (await client.post("/workflows", { name: "Nightly", steps })).string("workflowId");
  const make = async (more: object = {}) => {
    const made = await client.post("/schedules", { ...daily, target: { workflowId }, input: { hour: 9 }, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.string("scheduleId");
  };
  const view = (id: string) => client.get(`/schedules/${id}`);
  const put = (id: string, more: object = {}): Promise<ApiResponse> =>
    client.request("PUT", `/schedules/${id}`, {
      body: { ...daily, target: { workflowId }, input: { hour: 9 }, ...more },
    });
  const firings = async (id: string) => (await client.get(`/schedules/${id}/firings`)).at("data") as Firing[];
  const reached = (id: string, is: (found: Firing[]) => boolean) =>
    pollUntil(
      async () => {
        const found = await firings(id);
        return is(found) ? found : null;
      },
      { what: "firings" },
    );
  /** Puts the next firing of a schedule back, so that it is due. */
  const comeDue = async (id: string, agoMs = 1_000) => {
    const { schedules } = test.platform.store;
    const schedule = await schedules.get(await tenantOf(test), id);
    const slotAt = new Date(Date.now() - agoMs);
    if (schedule) await schedules.advance(schedule, { slotAt, dueAt: slotAt });
    return slotAt;
  };

  it("starts its target once when its time comes, and goes on to the next time", async () => {
    const id = await make();
    const before = (await view(id)).string("nextAt");
    const slotAt = await comeDue(id);
    const [firing] = await reached(id, ([first]) => first?.job?.status === "completed");
    expect(firing).to.include({ status: "started", slotAt: slotAt.toISOString() });
    const after = await view(id);
    expect(after.string("nextAt")).to.equal(before);
    expect(after.at("nextTimes")).to.have.length(5);
    expect(await firings(id)).to.have.length(1);
    const runs = await client.get(`/workflows/${workflowId}/runs`);
    expect(runs.at("data")).to.have.length(1);
  });

  it("fires each second as it passes", async () => {
    const id = await make({ cron: undefined, every: 1_000, overlap: "queue" });
    const found = await reached(id, (all) => all.filter(({ status }) => status === "started").length >= 3);
    await client.delete(`/schedules/${id}`);
    const slots = found.map(({ slotAt }) => Date.parse(slotAt)).reverse();
    for (const [at, slot] of slots.slice(1).entries()) expect(slot - (slots[at] ?? 0)).to.equal(1_000);
  });

  it("fires once at a time", async () => {
    const at = new Date(Date.now() + 300).toISOString();
    const id = await make({ cron: undefined, at });
    await reached(id, ([first]) => first?.job?.status === "completed");
    expect((await view(id)).body)
      .to.include({ enabled: true })
      .and.not.have.property("nextAt");
    expect((await put(id, { cron: undefined, at, name: "Renamed" })).at("name")).to.equal("Renamed");
    expect(await firings(id)).to.have.length(1);
  });

  it("refuses what can never be started, and says which field", async () => {
    const refused: [object, string, number?][] = [
      [{ cron: "61 * * * *" }, "cron"],
      [{ cron: "0 0 30 2 *" }, "cron"],
      [{ cron: "? * * * *" }, "cron"],
      [{ cron: "2031-01-01T00:00:00" }, "cron"],
      [{ cron: "* * * * * * 2031" }, "cron"],
      [{ every: 1_000 }, "cron"],
      [{ cron: undefined }, "cron"],
      [{ cron: undefined, every: 999 }, "every"],
      [{ cron: undefined, at: "2020-01-01T00:00:00Z" }, "at"],
      [{ cron: undefined, at: "2020-01-01T00:00:00" }, "at"],
      [{ timezone: "Mars/Olympus" }, "timezone"],
      [{ target: {} }, "target"],
      [{ target: { workflowId, refresh: { collection: "default" } } }, "target"],
      [{ target: { workflowId: "wf_01M80BTCKBSKNHEZVJ0V2BDPKV" } }, "target.workflowId", 404],
      [{ target: { agentId: "agt_01M80BTCKBSKNHEZVJ0V2BDPKV" }, input: "Hi" }, "target.agentId", 404],
      [{ target: { composite: { pattern: "debate", profile: "coding" } }, input: 5 }, "input"],
      [{ target: { refresh: { collection: "nothing" } }, input: undefined }, "target.refresh.collection", 404],
      [{ target: { refresh: { collection: "default" } } }, "input"],
      [{ target: { composite: { pattern: "debate", profile: "coding" } }, input: undefined }, "input"],
      [{ overlap: "both" }, "overlap"],
      [{ jitterMs: -1 }, "jitterMs"],
    ];
    for (const [more, param, status = 400] of refused) {
      const answer = await client.post("/schedules", { ...daily, target: { workflowId }, input: { hour: 9 }, ...more });
      expect([answer.status, answer.at("error.param")], `${JSON.stringify(more)} ${answer.text}`).to.deep.equal([
        status,
        param,
      ]);
    }
  });

  it("leaves a firing out while its job has not ended, or lets it wait", async () => {
    const target = { workflowId: await makeWorkflow(waiting) };
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const approve = async () => {
      const { data } = (await owner.get("/workflows/approvals")).body as {
        data: { approvalId: string; workflowId: string }[];
      };
      const approval = data.find((one) => one.workflowId === target.workflowId);
      await owner.post(`/workflows/approvals/${approval?.approvalId}/decide`, { decision: "approved" });
    };
    const id = await make({ target });
    await comeDue(id);
    await reached(id, ([first]) => first?.job?.status === "awaiting");
    await comeDue(id);
    const [skipped] = await reached(id, (all) => all.length === 2);
    expect(skipped).to.include({ status: "skipped" }).and.not.have.property("job");
    await put(id, { target, overlap: "queue" });
    await comeDue(id);
    await reached(id, ([first]) => first?.status === "waiting");
    await approve();
    await reached(id, ([first]) => first?.job?.status === "awaiting");
    await approve();
    await reached(id, ([first]) => first?.job?.status === "completed");
  });

  it("makes one firing for those that nobody could take, or none", async () => {
    const every = 10_000;
    const one = await make({ cron: undefined, every });
    await comeDue(one, 95_000);
    const [caughtUp] = await reached(one, ([first]) => first?.job?.status === "completed");
    expect(caughtUp?.missed).to.equal(9);
    expect(await firings(one)).to.have.length(1);
    expect(Date.parse((await view(one)).string("nextAt"))).to.be.within(Date.now() - 1_000, Date.now() + every);
    const none = await make({ cron: undefined, every, catchUp: "none" });
    await comeDue(none, 95_000);
    const [missed] = await reached(none, (all) => all.length === 1);
    expect(missed).to.include({ status: "missed", missed: 9 }).and.not.have.property("job");
  });

  it("does not fire for the time in which it was disabled", async () => {
    const id = await make({ enabled: false });
    expect((await view(id)).body).to.deep.include({ enabled: false, nextTimes: [] });
    const put1 = await put(id, {});
    expect(Date.parse(put1.string("nextAt"))).to.be.greaterThan(Date.now());
    await put(id, { enabled: false });
    expect((await view(id)).body).to.not.have.property("nextAt");
    expect(await firings(id)).to.deep.equal([]);
  });

  it("is started by hand with the caller's key, and keeps its times", async () => {
    const id = await make({ enabled: false });
    const headers = { "idempotency-key": "run-1" };
    const run = await client.post(`/schedules/${id}/run`, undefined, { headers });
    expect([run.status, run.at("manual"), run.at("status")]).to.deep.equal([202, true, "started"]);
    const again = await client.post(`/schedules/${id}/run`, undefined, { headers });
    expect(again.at("firingId")).to.equal(run.at("firingId"));
    await reached(id, (all) => all.length === 1 && all[0]?.job?.status === "completed");
  });

  it("ends with the key that made it, until another one replaces it", async () => {
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const made = await owner.post("/keys", { role: "member", subject: "leaver" });
    const leaver = makeClient({ url: test.url, key: made.string("key") });
    const created = await leaver.post("/schedules", { ...daily, target: { workflowId }, input: { hour: 9 } });
    const id = created.string("scheduleId");
    await owner.delete(`/keys/${made.string("keyId")}`);
    await comeDue(id);
    const [refused] = await reached(id, ([first]) => first?.status === "failed");
    expect(refused?.error?.code).to.equal("insufficient_scope");
    const now = await view(id);
    expect(now.body).to.include({ enabled: false });
    expect(now.at("disabledBecause")).to.contain("revoked");
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const body = { ...daily, target: { workflowId }, input: { hour: 9 } };
    const taken = await admin.request("PUT", `/schedules/${id}`, { body });
    expect(taken.body).to.include({ enabled: true }).and.not.have.property("disabledBecause");
    await comeDue(id);
    await reached(id, ([first]) => first?.job?.status === "completed");
  });

  it("is disabled when what it starts is deleted", async () => {
    const target = { workflowId: await makeWorkflow(quiet) };
    const id = await make({ target });
    await client.delete(`/workflows/${target.workflowId}`);
    await comeDue(id);
    const [failed] = await reached(id, ([first]) => first?.status === "failed");
    expect(failed?.error?.code).to.equal("not_found");
    expect((await view(id)).body).to.include({ enabled: false });
  });

  it("starts agents and patterns", async () => {
    const agent = await client.post("/agents", { name: "Desk", model: "meta-llm", systemPrompt: "You answer." });
    const targets = [
      { agentId: agent.string("agentId") },
      { composite: { pattern: "chain-of-thought", profile: "coding" } },
    ];
    for (const target of targets) {
      const id = await make({ target, input: "What are you?" });
      await comeDue(id);
      await reached(id, ([first]) => first?.job?.status === "completed");
    }
  });

  it("keeps nothing of an input that a regulated profile must not let through", async () => {
    const target = { composite: { pattern: "chain-of-thought", profile: "healthcare" } };
    const refused = await client.post("/schedules", { ...daily, target, input: "SSN 536-22-8726" });
    expect([refused.status, refused.at("error.code")]).to.deep.equal([422, "compliance_blocked"]);
  });

  it("belongs to its tenant, and members replace their own alone", async () => {
    const id = await make();
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    for (const path of [`/schedules/${id}`, `/schedules/${id}/firings`])
      expect((await stranger.get(path)).status).to.equal(404);
    expect((await stranger.post(`/schedules/${id}/run`)).status).to.equal(404);
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const other = makeClient({
      url: test.url,
      key: (await owner.post("/keys", { role: "member", subject: "other" })).string("key"),
    });
    expect((await other.delete(`/schedules/${id}`)).at("error.code")).to.equal("insufficient_role");
    const limited = makeClient({
      url: test.url,
      key: (await owner.post("/keys", { role: "owner", subject: "limited", collections: ["a"] })).string("key"),
    });
    const body = { ...daily, target: { workflowId }, input: {} };
    const refused = [
      await limited.post("/schedules", body),
      await limited.get("/schedules"),
      await limited.post(`/schedules/${id}/run`),
    ];
    for (const answer of refused) expect(answer.at("error.code")).to.equal("insufficient_scope");
    expect((await client.delete(`/schedules/${id}`)).status).to.equal(204);
    expect((await view(id)).status).to.equal(404);
  });
});
