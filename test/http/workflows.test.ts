import { expect } from "chai";
import { pollUntil } from "../support/poll-until.ts";
import {
  chatModel,
  condition,
  openWorkflowHarness,
  stepsOf,
  type WorkflowHarness,
} from "../support/workflow-harness.ts";

describe("workflows", function () {
  this.timeout(30_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    const document = { title: "Pump manual", content: "Bleed pump P-100 every Monday before the shift begins." };
    expect((await harness.member.post("/rag/ingest", document)).status).to.equal(201);
  });
  after(() => harness?.close());

  const completion = (fields: object = {}) => ({ type: "ai_completion", model: chatModel, prompt: "Hello", ...fields });
  it("run all kinds of steps to the end, each with the outputs of those before", async () => {
    const { site, model, member, admin } = harness;
    model.play(({ input }) => ({
      text: input.startsWith("Draft") ? "Bleed it on Monday." : "urgent",
      usage: { prompt_tokens: 20, completion_tokens: 5 },
    }));
    site.on("/tickets/P-100", (_, response) => {
      response.writeHead(201, { "content-type": "application/json" }).end('{"ticket":{"id":77}}');
    });
    const steps = [
      completion({ id: "kind", prompt: "Is this urgent? {{ input.question }}" }),
      { type: "rag_query", id: "facts", query: "{{ input.pump }} {{ 'bleed' + ' Monday' }}", topK: 1 },
      {
        ...condition(
          "steps.kind.output == 'urgent' && size(steps.facts.output) == 1",
          [
            completion({
              id: "draft",
              prompt: "Draft an answer from: {{ steps.facts.output[0].content }} ({{ input.tries + 1 }})",
              systemPrompt: "You work for {{ input.site.name }}.",
            }),
            condition("input.tries > 1.5", [{ type: "human_approval", id: "sign", assigneeRole: "admin" }], []),
          ],
          [completion({ id: "never" })],
        ),
        id: "gate",
      },
      {
        type: "webhook",
        id: "post",
        url: `${site.origin}/tickets/{{ input.pump }}?by={{ steps.sign.output.decision }}`,
        method: "post",
        body: {
          text: "{{ steps.draft.output }}",
          count: "{{ size(steps.facts.output) }}",
          nested: { list: ["{{ input.tags }}", "is {{ steps.gate.output.branch }}"], flag: true },
        },
      },
      completion({ id: "last", prompt: "Draft a note on ticket {{ previous.body.ticket.id }} of {{ run.version }}" }),
    ];
    const created = await member.post("/workflows", { name: "Complaint", description: "Answers.", steps });
    expect(created.status, created.text).to.equal(201);
    const workflowId = created.string("workflowId");
    const input = { question: "Does it leak?", pump: "P-100", tries: 2, site: { name: "Plant 7" }, tags: ["a", "b"] };
    const started = await member.post(`/workflows/${workflowId}/execute`, { input });
    expect(started.status).to.equal(202);
    expect(started.at("kind")).to.equal("workflow");
    expect(started.at("statusUrl")).to.equal(`/jobs/${started.string("jobId")}`);
    const runId = started.string("runId");

    const waiting = await harness.reach(workflowId, runId, "awaiting_approval");
    expect(waiting.at("awaiting.assigneeRole")).to.equal("admin");
    expect(stepsOf(waiting).at(-1)).to.include({ id: "sign", path: "2/then/1/then/0", status: "awaiting_approval" });
    const approvalId = waiting.string("awaiting.approvalId");
    const decided = await admin.post(`/workflows/approvals/${approvalId}/decide`, { decision: "approved" });
    expect(decided.status, decided.text).to.equal(200);

    const run = await harness.reach(workflowId, runId, "completed", "failed");
    expect(run.at("status"), run.text).to.equal("completed");
    expect(stepsOf(run).map(({ id, path }) => `${id} ${path}`)).to.deep.equal([
      "kind 0",
      "facts 1",
      "gate 2",
      "draft 2/then/0",
      "step_5 2/then/1",
      "sign 2/then/1/then/0",
      "post 3",
      "last 4",
    ]);
    expect(run.at("output")).to.equal("Bleed it on Monday.");
    expect(run.at("steps[1].output[0].title")).to.equal("Pump manual");
    expect(run.at("steps[4].output")).to.deep.equal({ branch: "then" });
    expect(run.at("steps[6].output.status")).to.equal(201);
    expect(run.at("steps[6].output.body")).to.deep.equal({ ticket: { id: 77 } });
    expect(run.at("tokensUsed")).to.be.at.least(75);
    expect(run.at("costUsd")).to.be.greaterThan(0);

    const asked = model.calls.map(({ input: prompt }) => prompt);
    expect(asked).to.deep.equal([
      "Is this urgent? Does it leak?",
      "Draft an answer from: Bleed pump P-100 every Monday before the shift begins. (3)",
      "Draft a note on ticket 77 of 1",
    ]);
    expect(model.calls[1]?.messages[0]).to.deep.include({ role: "system", content: "You work for Plant 7." });
    const [sent] = site.requests;
    expect(sent?.method).to.equal("POST");
    expect(sent?.path).to.equal("/tickets/P-100?by=approved");
    expect(JSON.parse(sent?.body ?? "")).to.deep.equal({
      text: "Bleed it on Monday.",
      count: 1,
      nested: { list: [["a", "b"], "is then"], flag: true },
    });
    const job = await member.get(`/jobs/${started.string("jobId")}`);
    expect(job.at("status")).to.equal("completed");
    expect(job.at("result.runId")).to.equal(runId);
    const listed = (await member.get("/jobs?kind=workflow")).at("data") as { jobId: string; costUsd?: number }[];
    const cost = run.at("costUsd");
    expect([job.at("costUsd"), listed.find(({ jobId }) => jobId === job.at("jobId"))?.costUsd]).to.deep.equal([
      cost,
      cost,
    ]);
  });

  it("answer a caller who waits with how the run ended", async () => {
    harness.model.play(() => ({ text: "Four." }));
    const workflowId = await harness.create([completion()]);
    const headers = { prefer: "wait=10" };
    const ended = await harness.member.post(`/workflows/${workflowId}/execute`, {}, { headers });
    expect(ended.status).to.equal(200);
    expect(ended.body).to.include({ status: "completed", output: "Four.", workflowId });
    harness.model.play(() => ({ status: 400 }));
    const failed = await harness.member.post(`/workflows/${workflowId}/execute`, {}, { headers });
    expect([failed.status, failed.at("error.code")]).to.deep.equal([400, "provider_rejected"]);
    expect(failed.at("error.details.step")).to.equal("step_1");
    expect(failed.at("error.details.runId")).to.match(/^wfr_/);
  });

  it("send each step to followers of the job", async () => {
    harness.model.play(() => ({ text: "Four." }));
    const workflowId = await harness.create([completion({ id: "one" }), completion({ id: "two" })]);
    const started = await harness.member.post(`/workflows/${workflowId}/execute`);
    const { events } = await harness.member.events("GET", `/jobs/${started.string("jobId")}/events`);
    const steps: unknown[] = [];
    for await (const { event, data } of events) if (event === "step") steps.push(data);
    expect(steps).to.deep.equal([
      { event: "step", id: "one", path: "0", type: "ai_completion", status: "completed" },
      { event: "step", id: "two", path: "1", type: "ai_completion", status: "completed" },
    ]);
  });

  it("retry a step when that can help, as often as it says, and record the result once", async () => {
    let failing = 2;
    harness.model.play(() => {
      failing -= 1;
      return failing >= 0 ? { status: 503 } : { text: "At last." };
    });
    const run = await harness.run([completion({ retry: { attempts: 3, backoffMs: 10 } })]);
    expect(run.at("status"), run.text).to.equal("completed");
    expect(stepsOf(run)).to.have.lengthOf(1);
    expect(run.at("steps[0].attempts")).to.equal(3);

    harness.model.play(() => ({ status: 503 }));
    const given = await harness.run([completion({ retry: { attempts: 2, backoffMs: 10 } }), completion()]);
    expect(given.at("status")).to.equal("failed");
    expect(given.at("error.code")).to.equal("provider_failed");
    expect(stepsOf(given).map(({ status, attempts }) => `${status} ${attempts}`)).to.deep.equal(["failed 2"]);
    expect(harness.model.calls).to.have.lengthOf(2);
    harness.model.play(() => ({ status: 400 }));
    expect((await harness.run([completion()])).at("steps[0].attempts"), "a refusal helps no retry").to.equal(1);
  });

  it("fail at a template that names something missing, and say where", async () => {
    const prompt = "Dear {{ input.customer.name }}";
    const run = await harness.run([condition("true", [completion({ id: "letter", prompt })])], { customer: {} });
    expect(run.at("status")).to.equal("failed");
    expect(run.at("error.code")).to.equal("invalid_request");
    expect(run.at("error.param")).to.equal("steps[0].then[0].prompt");
    expect(run.at("error.message")).to.match(/^input\.customer\.name has no value \(at character \d+\)$/);
    expect(run.at("error.details.path")).to.equal("0/then/0");
    const odd = await harness.run([condition("input.word", [completion()])], { word: "yes" });
    expect(odd.at("error.param")).to.equal("steps[0].expression");
  });

  it("leave runs in flight alone when the definition is edited, or deleted", async () => {
    const { member, model, admin } = harness;
    model.play(({ input }) => ({ text: `said ${input}` }));
    const steps = (word: string) => [{ type: "human_approval", assigneeRole: "admin" }, completion({ prompt: word })];
    const workflowId = await harness.create(steps("old"));
    const runs = [await harness.start(workflowId), await harness.start(workflowId)];
    const waiting = await Promise.all(runs.map((runId) => harness.reach(workflowId, runId, "awaiting_approval")));
    const edited = await member.request("PUT", `/workflows/${workflowId}`, {
      body: { name: "Desk", steps: steps("new"), version: 1 },
    });
    expect(edited.at("version"), edited.text).to.equal(2);
    const stale = await member.request("PUT", `/workflows/${workflowId}`, {
      body: { name: "Desk", steps: steps("newer"), version: 1 },
    });
    expect(stale.status).to.equal(409);
    const decide = async (at: number) => {
      const path = `/workflows/approvals/${waiting[at]?.string("awaiting.approvalId")}/decide`;
      expect((await admin.post(path, { decision: "approved" })).status).to.equal(200);
      return harness.reach(workflowId, runs[at] ?? "", "completed");
    };
    const first = await decide(0);
    expect([first.at("version"), first.at("output")]).to.deep.equal([1, "said old"]);
    const fresh = await harness.start(workflowId);
    const now = await harness.reach(workflowId, fresh, "awaiting_approval");
    expect(now.at("version")).to.equal(2);
    expect((await member.delete(`/workflows/${workflowId}`)).status).to.equal(204);
    expect((await member.get(`/workflows/${workflowId}`)).status).to.equal(404);
    expect((await member.post(`/workflows/${workflowId}/execute`)).status).to.equal(404);
    const second = await decide(1);
    expect(second.at("output")).to.equal("said old");
    const listed = await member.get(`/workflows/${workflowId}/runs?limit=2`);
    expect(listed.at("data")).to.have.lengthOf(2);
    expect(listed.at("data[0].runId")).to.equal(fresh);
    const rest = await member.get(`/workflows/${workflowId}/runs?limit=2&cursor=${listed.string("nextCursor")}`);
    expect(rest.at("data[0].runId")).to.equal(runs[0]);
  });

  it("stop when they are cancelled: while they wait, while they work, and by their job", async () => {
    const { member, model } = harness;
    const workflowId = await harness.create([{ type: "human_approval", assigneeRole: "owner" }, completion()]);
    const waits = await harness.start(workflowId);
    const { approvalId } = (await harness.reach(workflowId, waits, "awaiting_approval")).at("awaiting") as {
      approvalId: string;
    };
    const cancelled = await member.post(`/workflows/${workflowId}/runs/${waits}/cancel`);
    expect(cancelled.at("status"), cancelled.text).to.equal("cancelled");
    expect(stepsOf(cancelled).map(({ id, status }) => [id, status])).to.deep.equal([["step_1", "cancelled"]]);
    expect((await member.get(`/workflows/approvals/${approvalId}`)).at("status")).to.equal("cancelled");
    const late = await harness.owner.post(`/workflows/approvals/${approvalId}/decide`, { decision: "approved" });
    expect(late.status).to.equal(409);
    expect((await member.post(`/workflows/${workflowId}/runs/${waits}/cancel`)).status).to.equal(409);

    const byJob = await harness.start(workflowId);
    const run = await harness.reach(workflowId, byJob, "awaiting_approval");
    expect((await member.post(`/jobs/${run.string("jobId")}/cancel`)).at("status")).to.equal("cancelled");
    const pending = await member.get("/workflows/approvals");
    expect(pending.text).not.to.contain(run.string("awaiting.approvalId"));

    const reached = Promise.withResolvers<void>();
    model.play(async ({ ended }) => {
      reached.resolve();
      await ended;
      return { text: "too late" };
    });
    const working = await harness.create([completion(), completion()]);
    const busy = await harness.start(working);
    await reached.promise;
    expect((await member.post(`/workflows/${working}/runs/${busy}/cancel`)).status).to.equal(200);
    const stopped = await harness.reach(working, busy, "cancelled");
    expect(stepsOf(stopped).map(({ id, status, attempts }) => [id, status, attempts])).to.deep.equal([
      ["step_1", "cancelled", 1],
    ]);
    expect(await model.calls[0]?.ended, "the model call is given up").to.equal("left");
  });

  it("keep the step that was to be attempted again when they are cancelled", async () => {
    harness.model.play(() => ({ status: 503 }));
    const workflowId = await harness.create([completion({ id: "slow", retry: { attempts: 5, backoffMs: 600_000 } })]);
    const runId = await harness.start(workflowId);
    const path = `/workflows/${workflowId}/runs/${runId}`;
    await pollUntil(async () => stepsOf(await harness.member.get(path))[0]?.status === "retrying");
    const { jobId } = (await harness.member.get(path)).body as { jobId: string };
    await pollUntil(async () => (await harness.member.get(`/jobs/${jobId}`)).at("status") !== "running");
    expect((await harness.member.get(`/jobs/${jobId}`)).at("status"), "nobody is waited for").to.equal("queued");
    expect((await harness.member.get(path)).at("status")).to.equal("running");
    expect((await harness.member.post(`${path}/cancel`)).status).to.equal(200);
    const run = await harness.reach(workflowId, runId, "cancelled");
    expect(stepsOf(run).map(({ id, status, attempts }) => [id, status, attempts])).to.deep.equal([
      ["slow", "cancelled", 1],
    ]);
    expect(run.string("steps[0].finishedAt")).to.equal(run.at("finishedAt"));
  });

  it("refuse a body whose fields were meant as the input, and name them", async () => {
    const workflowId = await harness.create([completion()]);
    const refused = await harness.member.post(`/workflows/${workflowId}/execute`, { who: "Ana", tone: "calm" });
    expect([refused.status, refused.at("error.param")], refused.text).to.deep.equal([400, "input"]);
    expect(refused.string("error.message")).to.contain("who, tone");
    const extra = await harness.member.post(`/workflows/${workflowId}/execute`, {
      input: { who: "Ana" },
      tone: "calm",
    });
    expect([extra.status, extra.headers.get("x-svc-ignored")]).to.deep.equal([202, "tone"]);
  });

  it("let only their creator and admins change them, and no other tenant see them", async () => {
    const { member, admin, stranger, owner } = harness;
    const body = { name: "Owner's", steps: [completion()] };
    const workflowId = (await owner.post("/workflows", body)).string("workflowId");
    expect((await member.request("PUT", `/workflows/${workflowId}`, { body })).status).to.equal(403);
    expect((await member.delete(`/workflows/${workflowId}`)).status).to.equal(403);
    expect((await admin.request("PUT", `/workflows/${workflowId}`, { body })).at("version")).to.equal(2);
    for (const path of ["", "/runs"]) {
      expect((await stranger.get(`/workflows/${workflowId}${path}`)).status, path).to.equal(404);
    }
    expect((await stranger.post(`/workflows/${workflowId}/execute`)).status).to.equal(404);
    const listed = await member.get("/workflows?limit=1");
    expect(listed.at("data[0].workflowId")).to.equal(workflowId);
    expect((await stranger.get("/workflows")).at("data")).to.deep.equal([]);
  });

  it("refuse a definition that cannot run, naming the field", async () => {
    const deep = (depth: number): object[] => (depth === 0 ? [completion()] : [condition("true", deep(depth - 1))]);
    const cases: [steps: unknown, param: string | RegExp, message: RegExp][] = [
      [[], "steps", /./],
      [[{ type: "email" }], "steps[0].type", /./],
      [[{ type: "webhook", url: "https://example.com", method: "BREW" }], "steps[0].method", /./],
      [[{ type: "human_approval", assigneeRole: "member" }], "steps[0].assigneeRole", /./],
      [[{ type: "human_approval", assigneeRole: "owner", timeoutMs: 5 }], "steps[0].timeoutMs", /./],
      [[completion({ prompt: undefined })], "steps[0].prompt", /./],
      [[completion({ promt: "typo" })], /^steps\[0\]/, /promt/],
      [[condition("true", [{ type: "rag_query" }])], "steps[0].then[0].query", /./],
      [[completion({ id: "A" })], "steps[0].id", /./],
      [[completion({ id: "a" }), completion({ id: "a" })], "steps[1].id", /id of its own/],
      [[completion({ id: "step_2" }), completion()], "steps[1].id", /id of its own/],
      [[completion({ prompt: "{{ 1 + }}" })], "steps[0].prompt", /at character/],
      [[completion({ prompt: "Hi {{ input.name" })], "steps[0].prompt", /no }} after it/],
      [[completion({ prompt: "{{ nobody.name }}" })], "steps[0].prompt", /nobody/],
      [[completion({ prompt: "{{ steps.later.output }}" }), completion({ id: "later" })], "steps[0].prompt", /later/],
      [[completion({ id: "me", prompt: "{{ steps['me'].output }}" })], "steps[0].prompt", /steps.me/],
      [[condition("input.a ==", [])], "steps[0].expression", /at character/],
      [[condition("'text'", [])], "steps[0].expression", /true nor false/],
      [[completion({ model: "gpt-99" })], "steps[0].model", /gpt-99/],
      [[completion({ model: "text-embedding-3-small" })], "steps[0].model", /chat model/],
      [[{ type: "webhook", url: "http://10.0.0.1/", method: "GET" }], "steps[0].url", /./],
      [[{ type: "webhook", url: "https://a.io", method: "POST", body: { a: ["{{ ( }}"] } }], "steps[0].body.a[0]", /./],
      [
        [{ type: "webhook", url: "https://a.io", method: "POST", body: { a: "{{ steps.no.output }}", b: "{{ 1 }}" } }],
        "steps[0].body.a",
        /steps.no/,
      ],
      [deep(8), "steps", /deeper than 8/],
      [Array.from({ length: 6 }, () => completion({ prompt: "x".repeat(190_000) })), "steps", /262144 is the most/],
      [Array.from({ length: 201 }, () => completion()), "steps", /./],
      [
        [
          condition(
            "true",
            Array.from({ length: 200 }, () => completion()),
          ),
        ],
        "steps",
        /more than 200/,
      ],
    ];
    for (const [steps, param, message] of cases) {
      const answer = await harness.member.post("/workflows", { name: "Odd", steps });
      const shown = `${JSON.stringify(steps).slice(0, 200)} ${answer.text}`;
      expect(answer.status, shown).to.equal(400);
      if (typeof param === "string") expect(answer.at("error.param"), shown).to.equal(param);
      else expect(answer.at("error.param"), shown).to.match(param);
      expect(answer.text, shown).to.match(message);
    }
    expect((await harness.member.post("/workflows", { name: "Deep", steps: deep(7) })).status).to.equal(201);
    const hostile = `{"name":"Deep","steps":${'[{"type":"condition","expression":"true","then":'.repeat(5_000)}[]${"}]".repeat(5_000)}}`;
    const answer = await harness.member.request("POST", "/workflows", {
      raw: hostile,
      headers: { "content-type": "application/json" },
    });
    expect(answer.status).to.equal(400);
  });

  it("are refused when they are started with a model whose provider has no key", async () => {
    const workflowId = await harness.create([
      completion(),
      condition("true", [completion({ model: "claude-opus-5" })]),
    ]);
    const answer = await harness.member.post(`/workflows/${workflowId}/execute`);
    expect([answer.status, answer.at("error.code"), answer.at("error.param")], answer.text).to.deep.equal([
      400,
      "provider_not_configured",
      "steps[1].then[0].model",
    ]);
    expect((await harness.member.get(`/workflows/${workflowId}/runs`)).at("data")).to.deep.equal([]);
  });

  it("check an input against the workflow's schema before anything runs", async function () {
    this.timeout(120_000);
    harness.model.play(() => ({ text: "ok" }));
    const inputSchema = {
      type: "object",
      properties: { amount: { type: "number", minimum: 1 }, lines: { type: "array", items: { type: "string" } } },
      required: ["amount"],
    };
    const workflowId = await harness.create([completion()], { inputSchema });
    const refused = async (input: unknown) => {
      const answer = await harness.member.post(`/workflows/${workflowId}/execute`, { input });
      expect(answer.status, answer.text).to.equal(400);
      return answer.at("error.param");
    };
    expect(await refused(undefined)).to.equal("input");
    expect(await refused({ amount: 0 })).to.equal("input.amount");
    expect(await refused({ amount: 2, lines: ["a", 3] })).to.equal("input.lines[1]");
    expect((await harness.member.get(`/workflows/${workflowId}/runs`)).at("data")).to.deep.equal([]);
    await harness.reach(workflowId, await harness.start(workflowId, { amount: 2 }), "completed");
    const bad = await harness.member.post("/workflows", { name: "x", steps: [completion()], inputSchema: { type: 7 } });
    expect([bad.status, bad.at("error.param")]).to.deep.equal([400, "inputSchema"]);
    const bomb = { type: "string", pattern: "^(a+)+$" };
    const slow = await harness.create([completion()], { inputSchema: bomb });
    const stopped = await pollUntil(
      async () => {
        const answer = await harness.member.post(`/workflows/${slow}/execute`, { input: `${"a".repeat(40)}!` });
        return answer.status === 503 ? null : answer; // the machine had no time for it
      },
      { timeoutMs: 100_000 },
    );
    expect([stopped.status, stopped.at("error.param")]).to.deep.equal([400, "input"]);
  });
});
