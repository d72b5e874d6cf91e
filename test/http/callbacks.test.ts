import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { makeClient } from "../support/http-client.ts";
import { loseAnswer } from "../support/lose-answer.ts";
import { pollUntil } from "../support/poll-until.ts";
import type { ToolRequest } from "../support/tool-server.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const later = { headers: { prefer: "respond-async" } };

describe("callbacks of jobs", function () {
  this.timeout(30_000);
  let harness: WorkflowHarness;
  let secret: string;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => ({ text: "Done." }));
    secret = (await harness.admin.get("/webhooks/secret")).string("secret");
  });
  after(() => harness?.close());

  /** What came to a path, verified as its receiver does it. */
  const received = (path: string) =>
    harness.site.requests
      .filter((request) => request.path === path)
      .map(({ body, headers }: ToolRequest) => new Webhook(secret).verify(body, headers as Record<string, string>));
  const callbackTo = (path: string) => {
    harness.site.on(path, (_, response) => void response.writeHead(204).end());
    return { callback: { url: `${harness.site.origin}${path}` } };
  };
  const typesAt = (path: string) => received(path).map((one) => (one as { type: string }).type);
  const message = (path: string) => pollUntil(() => received(path)[0], { what: `a message to ${path}` });

  it("report the end of each kind of job, once, signed, with ids and no contents", async () => {
    const { member } = harness;
    const agent = await member.post("/agents", { name: "A", model: chatModel, systemPrompt: "x", tools: [] });
    const workflowId = await harness.create([{ type: "ai_completion", model: chatModel, prompt: "Hi" }]);
    const calls: [path: string, body: object][] = [
      ["/rag/ingest", { content: "The walrus sleeps." }],
      [`/agents/${agent.string("agentId")}/run`, { input: "Hi" }],
      ["/composite/execute", { pattern: "chain-of-thought", profile: "coding", input: "Why?", models: [chatModel] }],
      [`/workflows/${workflowId}/execute`, {}],
    ];
    for (const [at, [path, body]] of calls.entries()) {
      const accepted = await member.post(path, { ...body, ...callbackTo(`/told-${at}`) }, later);
      expect(accepted.status, accepted.text).to.equal(202);
      const { status, ...ids } = accepted.body as Record<string, unknown>;
      expect(status).to.equal("queued");
      const reported = (await message(`/told-${at}`)) as { type: string; timestamp: string; data: object };
      expect(reported.type, path).to.equal("job.completed");
      expect(reported.data).to.deep.equal({ ...ids, status: "completed" });
      const job = await member.get(accepted.string("statusUrl"));
      expect(reported.timestamp).to.equal(job.at("finishedAt"));
      const [sent] = harness.site.requests.filter((request) => request.path === `/told-${at}`);
      expect(sent?.headers["webhook-id"]).to.equal(accepted.at("jobId"));
    }
    await harness.test.platform.callbacks.sweep();
    for (const at of calls.keys()) expect(received(`/told-${at}`), "once").to.have.lengthOf(1);
  });

  it("say which job goes on when the store's answer about them was lost", async () => {
    const workflowId = await harness.create([{ type: "ai_completion", model: chatModel, prompt: "Hi" }]);
    loseAnswer(harness.test.platform.store.callbacks, "ensure");
    const call = { input: {}, ...callbackTo("/lost") };
    const lost = await harness.member.post(`/workflows/${workflowId}/execute`, call, later);
    expect([lost.status, lost.at("error.code")], lost.text).to.deep.equal([503, "unavailable"]);
    expect(await message("/lost")).to.deep.include({ type: "job.completed" });
    const job = await harness.member.get(`/jobs/${lost.string("error.details.jobId")}`);
    expect(job.at("status"), job.text).to.equal("completed");
  });

  it("report why a job failed, and that a job was cancelled", async () => {
    const failing = await harness.create([{ type: "ai_completion", model: chatModel, prompt: "{{ input.none }}" }]);
    await harness.member.post(`/workflows/${failing}/execute`, { input: {}, ...callbackTo("/failed") });
    const failed = (await message("/failed")) as { type: string; data: { error: { code: string } } };
    expect([failed.type, failed.data.error.code]).to.deep.equal(["job.failed", "invalid_request"]);
    const waiting = await harness.create([{ type: "human_approval", assigneeRole: "owner" }]);
    const started = await harness.member.post(`/workflows/${waiting}/execute`, callbackTo("/cancelled"));
    await harness.reach(waiting, started.string("runId"), "awaiting_approval");
    expect(typesAt("/cancelled")).not.to.include("job.cancelled");
    await harness.member.post(`/jobs/${started.string("jobId")}/cancel`);
    await pollUntil(() => typesAt("/cancelled").includes("job.cancelled"));
  });

  it("report approvals of both kinds when they are asked for and when they are decided on, without arguments", async () => {
    harness.model.play(({ turn }) =>
      turn === 1 ? { calls: [{ name: "calculator", arguments: { expression: "40+2" } }] } : { text: "Done." },
    );
    const approval = { assigneeRole: "admin" };
    const about = { name: "A", model: chatModel, systemPrompt: "x", tools: [{ type: "calculator", approval }] };
    const agentId = (await harness.member.post("/agents", about)).string("agentId");
    const workflowId = await harness.create([{ type: "human_approval", id: "sign", assigneeRole: "admin" }]);
    const calls = [
      [`/agents/${agentId}/run`, { input: "Hi" }, { kind: "agent", agentId, toolName: "calculator" }],
      [`/workflows/${workflowId}/execute`, {}, { kind: "workflow", workflowId, stepId: "sign" }],
    ] as const;
    for (const [at, [path, body, expected]] of calls.entries()) {
      const to = `/approvals-${at}`;
      const started = await harness.member.post(path, { ...body, ...callbackTo(to) }, later);
      const asked = (await message(to)) as { type: string; data: Record<string, string> };
      expect(asked.type).to.equal("approval.requested");
      expect(asked.data).to.deep.include({ ...expected, status: "pending", runId: started.string("runId") });
      expect(JSON.stringify(asked)).not.to.contain("40+2");
      await harness.admin.post(`/workflows/approvals/${asked.data.approvalId}/decide`, {
        decision: "approved",
        comment: "Fine.",
      });
      await pollUntil(() => typesAt(to).length === 3, { what: "three messages" });
      expect(typesAt(to).sort()).to.deep.equal(["approval.decided", "approval.requested", "job.completed"]);
      const decided = (received(to) as { type: string; data: object }[]).find(
        ({ type }) => type === "approval.decided",
      );
      expect(decided?.data).to.deep.include({ status: "approved", decidedBy: "admin@test", comment: "Fine." });
      const ids = harness.site.requests.flatMap((one) => (one.path === to ? [one.headers["webhook-id"]] : []));
      expect(ids.slice(0, 1)).to.deep.equal([`${asked.data.approvalId}:requested`]);
    }
    harness.model.play(() => ({ text: "Done." }));
  });

  it("are sent again, under the same id, when the receiver did not accept them", async () => {
    const { callback } = callbackTo("/flaky");
    let times = 0;
    harness.site.on("/flaky", (_, response) => {
      times += 1;
      response.writeHead(times === 1 ? 503 : 204, times === 1 ? { "retry-after": "0" } : {}).end();
    });
    await harness.member.post("/rag/ingest", { content: "Again.", callback }, later);
    await pollUntil(() => received("/flaky").length === 2, { timeoutMs: 15_000, what: "the second message" });
    expect(
      new Set(harness.site.requests.map(({ headers, path }) => path === "/flaky" && headers["webhook-id"])).size,
    ).to.equal(2);
  });

  it("of one tenant reach their receiver while those of another wait for receivers that do not answer", async () => {
    const stranger = makeClient({ url: harness.test.url, key: harness.test.keys.stranger });
    const held: ServerResponse[] = [];
    harness.site.on("/silent", (_, response) => {
      held.push(response.writeHead(200)); // and never an end
      response.write(" ");
    });
    const callback = { url: `${harness.site.origin}/silent` };
    const texts = Array.from({ length: 24 }, (_, n) => `Silent ${n}.`);
    for (const content of texts) {
      const accepted = await stranger.post("/rag/ingest", { content, callback }, later);
      expect(accepted.status, accepted.text).to.equal(202);
    }
    await pollUntil(() => held.length >= 8, { timeoutMs: 15_000, what: "receivers that do not answer" });
    const startedAt = performance.now();
    await harness.member.post("/rag/ingest", { content: "Quick.", ...callbackTo("/quick") }, later);
    await message("/quick");
    expect(performance.now() - startedAt).to.be.below(8_000);
    callbackTo("/silent"); // which answers from now on
    for (const response of held) response.end();
  });

  it("are refused beyond so many that are not delivered, before anything is accepted", async () => {
    const { store } = harness.test.platform;
    const stranger = makeClient({ url: harness.test.url, key: harness.test.keys.stranger });
    const caller = await harness.test.platform.tenancy.authenticate(harness.test.keys.stranger);
    const { tenantId = "" } = caller ?? {};
    const createdAt = new Date();
    const nextAt = new Date(Date.now() + 3_600_000);
    const url = `${harness.site.origin}/never`;
    const open = Array.from({ length: 2_000 }, (_, n) => ({
      _id: `job_open_${n}`,
      tenantId,
      owner: tenantId,
      url,
      createdAt,
      nextAt,
    }));
    for (let at = 0; at < open.length; at += 200)
      await Promise.all(open.slice(at, at + 200).map((one) => store.callbacks.ensure(one)));
    const refused = await stranger.post("/rag/ingest", { content: "One more.", callback: { url } }, later);
    expect([refused.status, refused.at("error.code"), refused.at("error.param")]).to.deep.equal([
      429,
      "too_many_concurrent",
      "callback",
    ]);
    expect((await stranger.post("/rag/ingest", { content: "One more." }, later)).status).to.equal(202);
    for (const { _id } of open) await store.callbacks.remove(tenantId, _id);
  });

  it("with a forbidden address are refused, and nothing is accepted; a form may name one, too", async () => {
    const before = (await harness.member.get("/jobs?limit=1")).at("data[0].jobId");
    const callback = { url: "http://169.254.169.254/" };
    const refused = await harness.member.post("/rag/ingest", { content: "No.", callback }, later);
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "callback.url"]);
    expect((await harness.member.get("/jobs?limit=1")).at("data[0].jobId")).to.equal(before);
    const form = new FormData();
    form.set("file", new Blob(["A file."]), "a.txt");
    form.set("callback", callbackTo("/form").callback.url);
    const accepted = await harness.member.request("POST", "/rag/ingest", { raw: form, ...later });
    expect(accepted.status, accepted.text).to.equal(202);
    await message("/form");
  });
});
