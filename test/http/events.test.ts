import { createHmac } from "node:crypto";
import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { Webhook } from "standardwebhooks";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Firing = { status: string; eventId: string; job?: { jobId: string; status: string }; error?: { code: string } };

describe("an event", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let owner: ApiClient;
  let workflowId: string;

  before(async () => {
    test = await startPlatform({ env: { RECONCILE_EVERY_MS: "100" } });
    client = makeClient({ url: test.url, key: test.keys.member });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    // biome-ignore lint/suspicious/noThenProperty: a condition's branch
    const steps = [{ type: "condition", expression: "input != null", then: [] }];
    workflowId = (await client.post("/workflows", { name: "On event", steps })).string("workflowId");
  });
  after(() => test.close());

  const trigger = async (more: object) => {
    const made = await client.post("/triggers", { target: { workflowId }, ...more });
    expect(made.status, made.text).to.equal(201);
    return made.string("triggerId");
  };
  const ended = (jobId: string) =>
    pollUntil(
      async () => {
        const job = await client.get(`/jobs/${jobId}`);
        return ["completed", "failed"].includes(job.string("status")) ? job : null;
      },
      { what: "the job of an event" },
    );
  /** Sends an event; resolves with what its job came to. */
  const send = async (name: string, body: object) => {
    const accepted = await client.post(`/events/${name}`, body);
    expect(accepted.status, accepted.text).to.equal(202);
    return ended(accepted.string("jobId"));
  };
  const firings = async (id: string) => (await client.get(`/triggers/${id}/firings`)).at("data") as Firing[];

  it("starts what its triggers say, if their condition is true, with the input that they make", async () => {
    const high = await trigger({
      event: "ticket.opened",
      when: "event.data.priority == 'high'",
      inputFrom: "{'text': event.data.text, 'of': event.name}",
    });
    const all = await trigger({ event: "ticket.opened" });
    const other = await trigger({ event: "ticket.closed" });
    const done = await send("ticket.opened", { data: { priority: "low", text: "It drips." } });
    expect(done.at("result")).to.include({ name: "ticket.opened", started: 1, woken: 0 });
    await send("ticket.opened", { data: { priority: "high", text: "It burns." } });
    expect([(await firings(high)).length, (await firings(all)).length, (await firings(other)).length]).to.deep.equal([
      1, 2, 0,
    ]);
    const [firing] = await firings(high);
    await ended(firing?.job?.jobId ?? "");
    const job = await client.get(`/jobs/${firing?.job?.jobId}`);
    const run = await client.get(`/workflows/${workflowId}/runs/${job.at("about.runId")}`);
    expect(run.at("input")).to.deep.equal({ text: "It burns.", of: "ticket.opened" });
  });

  it("starts agents with a text", async () => {
    const agent = await client.post("/agents", { name: "Desk", model: "meta-llm", systemPrompt: "You answer." });
    const target = { agentId: agent.string("agentId") };
    const id = await trigger({ event: "mail", target, inputFrom: "event.data.subject" });
    const whole = await trigger({ event: "mail", target });
    await send("mail", { data: { subject: "What are you?" } });
    const runs = await client.get(`/agents/${target.agentId}/runs`);
    expect(runs.at("data")).to.have.length(2);
    for (const each of [id, whole]) expect((await firings(each))[0]).to.include({ status: "started" });
  });

  it("is taken once by its sender's id", async () => {
    const id = await trigger({ event: "paid" });
    const first = await client.post("/events/paid", { id: "invoice-1", data: { eur: 5 } });
    await ended(first.string("jobId"));
    const repeats = await Promise.all(
      [1, 2, 3].map(() => client.post("/events/paid", { id: "invoice-1", data: { eur: 500 } })),
    );
    for (const repeat of repeats)
      expect(repeat.body).to.include({ eventId: first.at("eventId"), jobId: first.at("jobId"), duplicate: true });
    expect(await firings(id)).to.have.length(1);
    await send("paid", { id: "invoice-2" });
    expect(await firings(id)).to.have.length(2);
  });

  it("without an id is taken once by the Idempotency-Key of its call, when the store's answer was lost", async () => {
    const id = await trigger({ event: "posted" });
    const { jobs } = test.platform.store;
    const { insert } = jobs;
    jobs.insert = async (record) => {
      jobs.insert = insert;
      await insert(record);
      throw new MongoNetworkError("the answer is lost");
    };
    const call = () => client.post("/events/posted", {}, { headers: { "idempotency-key": "posted" } });
    expect((await call()).status).to.equal(503);
    const repeat = await call();
    expect(repeat.status, repeat.text).to.equal(202);
    await ended(repeat.string("jobId"));
    expect(await firings(id)).to.have.length(1);
  });

  it("may hold what no text and no number can", async () => {
    const id = await trigger({ event: "odd", when: "event.data.order == 'a�' && event.data.rate == null" });
    const raw = '{"data":{"order":"a\\ud83d","rate":1e999}}';
    const headers = { "content-type": "application/json" };
    const accepted = await client.request("POST", "/events/odd", { raw, headers });
    expect((await ended(accepted.string("jobId"))).at("result.started")).to.equal(1);
    expect((await firings(id))[0]).to.include({ status: "started" });
  });

  it("wakes the runs that wait for it, and exactly those", async () => {
    const { waits, store } = test.platform;
    const tenantId = await tenantOf(test);
    const until = new Date(Date.now() + 60_000);
    const wait = async (n: number, name: string, match?: Record<string, unknown>) => {
      const waitId = `wait_${name}_${n}`;
      await waits.begin({ tenantId, jobId: `job_${n}`, waitId, until, event: { name, match } });
      return async () => (await store.waits.get(tenantId, waitId))?.status;
    };
    const ours = await wait(1, "shipped", { order: 7 });
    const others = await wait(2, "shipped", { order: 8 });
    const elsewhere = await wait(3, "lost", { order: 7 });
    expect((await send("shipped", { data: { order: 7 } })).at("result.woken")).to.equal(1);
    expect([await ours(), await others(), await elsewhere()]).to.deep.equal(["over", "pending", "pending"]);
  });

  it("says on a firing why nothing was started, and disables a trigger that can start nothing any more", async () => {
    const steps = [{ type: "human_approval", assigneeRole: "owner" }];
    const made = await client.post("/workflows", { name: "Gone", steps });
    const id = await trigger({ event: "gone", target: { workflowId: made.string("workflowId") } });
    const bad = await trigger({ event: "gone", when: "event.data.missing.field == 1" });
    await client.delete(`/workflows/${made.string("workflowId")}`);
    await send("gone", { data: {} });
    expect((await firings(id))[0]?.error?.code).to.equal("not_found");
    expect((await client.get(`/triggers/${id}`)).at("enabled")).to.equal(false);
    expect((await firings(bad))[0]?.error?.code).to.equal("invalid_request");
    expect((await client.get(`/triggers/${bad}`)).at("enabled")).to.equal(true);
  });

  it("has triggers that are checked when they are made", async () => {
    const refused: [object, string, number?][] = [
      [{ event: "x", when: "event.data ==" }, "when"],
      [{ event: "x", when: "1 + 1" }, "when"],
      [{ event: "x", when: "input.x == 1" }, "when"],
      [{ event: "x", inputFrom: "event.(" }, "inputFrom"],
      [{ event: "bad name" }, "event"],
      [{ event: "x", target: { workflowId: "wf_01M80BTCKBSKNHEZVJ0V2BDPKV" } }, "target.workflowId", 404],
    ];
    for (const [more, param, status = 400] of refused) {
      const answer = await client.post("/triggers", { target: { workflowId }, ...more });
      expect([answer.status, answer.at("error.param")], answer.text).to.deep.equal([status, param]);
    }
  });

  it("is bounded in its bytes, and belongs to its tenant", async () => {
    const large = await client.post("/events/large", { data: "x".repeat(300_000) });
    expect(large.status).to.equal(413);
    const id = await trigger({ event: "ours" });
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    await stranger.post("/events/ours", { data: 1 });
    expect((await stranger.get(`/triggers/${id}`)).status).to.equal(404);
    await send("ours", { data: 1 });
    expect(await firings(id)).to.have.length(1);
  });

  describe("of a source that signs", () => {
    const secret = "a-secret-of-twenty-and-more";
    const now = () => Math.floor(Date.now() / 1_000);
    const hex = (key: string, text: string) => createHmac("sha256", key).update(text).digest("hex");
    const source = async (kind: string, event: string, more: object = { secret }) => {
      const made = await owner.post("/event-sources", { name: kind, kind, event, ...more });
      expect(made.status, made.text).to.equal(201);
      return { path: made.string("path"), secret: made.string("secret"), id: made.string("sourceId") };
    };
    const post = (path: string, raw: string, headers: Record<string, string>) =>
      makeClient({ url: test.url }).request("POST", path, {
        raw,
        headers: { "content-type": "application/json", ...headers },
      });
    const slackHeaders = (raw: string, at = now(), key = secret) => ({
      "x-slack-request-timestamp": String(at),
      "x-slack-signature": `v0=${hex(key, `v0:${at}:${raw}`)}`,
    });
    const standardHeaders = (raw: string, key: string, { id = "msg_1", at = now() } = {}) => ({
      "webhook-id": id,
      "webhook-timestamp": String(at),
      "webhook-signature": new Webhook(key).sign(id, new Date(at * 1_000), raw),
    });

    it("is taken from GitHub, once, with the type of its header", async () => {
      const { path } = await source("github", "repository");
      const id = await trigger({ event: "repository", when: "event.type == 'push' && event.data.ref == 'main'" });
      const raw = JSON.stringify({ ref: "main" });
      const headers = { "x-hub-signature-256": `sha256=${hex(secret, raw)}`, "x-github-event": "push" };
      const accepted = await post(path, raw, headers);
      expect(accepted.status, accepted.text).to.equal(202);
      await ended(accepted.string("jobId"));
      // Neither the delivery's id nor the event's type is signed: a replay with others is the same request.
      const replay = await post(path, raw, { ...headers, "x-github-delivery": "another", "x-github-event": "ping" });
      expect(replay.at("duplicate")).to.equal(true);
      expect(await firings(id)).to.have.length(1);
    });

    it("is taken from Slack, whose challenge is answered", async () => {
      const { path } = await source("slack", "chat");
      const challenge = JSON.stringify({ type: "url_verification", challenge: "abc" });
      const answer = await post(path, challenge, slackHeaders(challenge));
      expect([answer.status, answer.body]).to.deep.equal([200, { challenge: "abc" }]);
      const raw = JSON.stringify({ type: "event_callback", event_id: "Ev1", event: { type: "message" } });
      const first = await post(path, raw, slackHeaders(raw));
      expect(first.status).to.equal(202);
      const repeat = await post(path, raw, slackHeaders(raw, now() - 1));
      expect(repeat.body).to.include({ eventId: first.at("eventId"), duplicate: true });
    });

    it("is taken by Standard Webhooks, with a secret that is made here", async () => {
      const made = await source("standard-webhooks", "orders", {});
      const raw = JSON.stringify({ type: "order.paid", data: { n: 1 } });
      expect((await post(made.path, raw, standardHeaders(raw, made.secret))).status).to.equal(202);
      expect((await post(made.path, raw, standardHeaders(raw, made.secret))).at("duplicate")).to.equal(true);
      expect((await post(made.path, raw, standardHeaders(raw, made.secret, { id: "msg_2" }))).at("duplicate")).to.equal(
        undefined,
      );
      const listed = await owner.get("/event-sources");
      expect(listed.text).to.not.contain(made.secret);
      await owner.delete(`/event-sources/${made.id}`);
      expect((await post(made.path, raw, standardHeaders(raw, made.secret))).status).to.equal(401);
    });

    it("is refused with a wrong signature, another body, or an old or future time", async () => {
      const github = await source("github", "hooks");
      const slack = await source("slack", "hooks");
      const standard = await source("standard-webhooks", "hooks", {});
      const raw = JSON.stringify({ n: 1 });
      const good = hex(secret, raw);
      const hub = (signature: string) => ({ "x-hub-signature-256": signature });
      const std = standardHeaders(raw, standard.secret, { id: "m" });
      const elsewhere = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
      const refused: [string, Record<string, string>, string?][] = [
        [github.path, {}],
        [github.path, hub("")],
        [github.path, hub("sha256=")],
        [github.path, hub(good)],
        [github.path, hub(`sha256=${good.toUpperCase()}`)],
        [github.path, hub(`sha256=${good.slice(0, -1)}0x`)],
        [github.path, hub(`sha1=${good}`)],
        [github.path, hub(`sha256=${hex("another-secret", raw)}`)],
        [github.path, hub(`sha256=${good}`), `${raw} `],
        [slack.path, {}],
        [slack.path, slackHeaders(raw, now() - 301)],
        [slack.path, slackHeaders(raw, now() + 320)],
        [slack.path, slackHeaders(raw, now(), "another-secret")],
        [slack.path, { ...slackHeaders(raw), "x-slack-request-timestamp": String(now() - 60) }],
        [slack.path, { ...slackHeaders(raw), "x-slack-request-timestamp": "NaN" }],
        [slack.path, slackHeaders(raw), JSON.stringify({ n: 2 })],
        [standard.path, {}],
        [standard.path, standardHeaders(raw, standard.secret, { at: now() - 400 })],
        [standard.path, standardHeaders(raw, standard.secret, { at: now() + 400 })],
        [standard.path, standardHeaders(raw, elsewhere)],
        [standard.path, { ...std, "webhook-id": "other" }],
        [standard.path, { ...std, "webhook-signature": (std["webhook-signature"] ?? "").replace("v1,", "v2,") }],
        [standard.path, std, JSON.stringify({ n: 2 })],
        [github.path.replace(github.id, "evs_01M80BTCKBSKNHEZVJ0V2BDPKV"), hub(`sha256=${good}`)],
      ];
      const jobs = await owner.get("/jobs?kind=event");
      for (const [at, [path, headers, body = raw]] of refused.entries()) {
        const answer = await post(path, body, headers);
        expect([answer.status, answer.at("error.code")], `${at} ${answer.text}`).to.deep.equal([
          401,
          "invalid_signature",
        ]);
      }
      expect((await owner.get("/jobs?kind=event")).at("data")).to.deep.equal(jobs.at("data"));
    });

    it("is an admin's to make", async () => {
      const body = { name: "x", kind: "github", event: "x" };
      expect((await client.post("/event-sources", body)).at("error.code")).to.equal("insufficient_role");
      const bad = await owner.post("/event-sources", {
        ...body,
        kind: "standard-webhooks",
        secret: "not base64 at all !",
      });
      expect([bad.status, bad.at("error.param")]).to.deep.equal([400, "secret"]);
    });
  });
});
