import { expect } from "chai";
import { chatModel, condition, openWorkflowHarness, set, type WorkflowHarness } from "../support/workflow-harness.ts";

describe("a dry run of a workflow", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  let asked = 0;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => {
      asked += 1;
      return { text: "Never" };
    });
    harness.site.on("/effect", (_, response) => {
      asked += 1;
      response.writeHead(204).end();
    });
  });
  after(() => harness.close());

  const dryRun = async (workflowId: string, input?: unknown) =>
    harness.member.post(`/workflows/${workflowId}/execute?dryRun=true`, { input });
  const url = () => `${harness.site.origin}/effect`;

  it("says what every type of step would call, and calls and keeps nothing", async () => {
    const agentId = (
      await harness.member.post("/agents", { name: "Helper", model: chatModel, systemPrompt: "Help.", tools: [] })
    ).string("agentId");
    const inner = await harness.create([
      { type: "ai_completion", id: "inner", model: chatModel, prompt: "Inner {{ input }}" },
    ]);
    const workflowId = await harness.create([
      { type: "rag_query", id: "facts", query: "{{ input.q }}" },
      { type: "ai_completion", id: "draft", model: chatModel, prompt: "Use {{ steps.facts.output[0].content }}" },
      { type: "human_approval", id: "ok", assigneeRole: "admin", message: "Send {{ steps.draft.output }}?" },
      condition(
        "steps.ok.output.decision == 'approved'",
        [{ type: "webhook", id: "send", url: url(), method: "POST", body: { text: "{{ steps.draft.output }}" } }],
        [set("never", { n: 1 })],
      ),
      { type: "agent", id: "ask", agentId, input: "Ask {{ input.q }}" },
      { type: "composite", id: "many", pattern: "critique", profile: "coding", input: "Check it" },
      { type: "wait", id: "event", event: "ready", match: { n: "{{ input.n }}" } },
      {
        type: "parallel",
        id: "both",
        branches: { a: [{ type: "workflow", id: "sub", workflowId: inner, input: "x" }] },
      },
      {
        ...{ type: "for_each", id: "loop", items: "[1, 2, 3]" },
        do: [{ type: "webhook", id: "each", url: url(), method: "PUT", body: { item: "{{ item }}" } }],
      },
      set("end", { v: "{{ steps.both.output.a }}" }),
    ]);
    const run = await dryRun(workflowId, { q: "What?", n: 7 });
    expect(run.status, run.text).to.equal(200);
    expect(run.at("status"), run.text).to.equal("completed");
    expect(run.at("output")).to.deep.equal({ v: `[the answer of ${chatModel}]` });
    const calls = run.at("calls") as Record<string, unknown>[];
    const paths = calls.map(({ path }) => path);
    expect(paths.toSorted()).to.deep.equal(
      [
        "0",
        "1",
        "2",
        "3/then/0",
        "4",
        "5",
        "6",
        "7/branches/a/0",
        "7/branches/a/0/0",
        "8/do[0]/0",
        "8/do[1]/0",
        "8/do[2]/0",
      ].toSorted(),
    );
    expect(run.at("callCount")).to.equal(12);
    const call = (path: string) => calls.find((one) => one.path === path);
    expect(call("1")).to.include({ id: "draft", model: chatModel, prompt: "Use [a passage]" });
    expect(call("3/then/0")).to.deep.include({
      method: "POST",
      url: url(),
      body: { text: `[the answer of ${chatModel}]` },
    });
    expect(call("6")).to.have.nested.property("waitsFor.match.n", 7);
    expect(call("7/branches/a/0/0")).to.include({ type: "ai_completion", prompt: "Inner x" });
    expect(call("8/do[1]/0")).to.deep.include({ method: "PUT", body: { item: 2 } });
    expect(asked, "calls of models and addresses").to.equal(0);
    expect((await harness.member.get(`/workflows/${workflowId}/runs`)).at("data")).to.deep.equal([]);
    expect((await harness.member.get("/jobs")).at("data")).to.deep.equal([]);
    expect((await harness.admin.get("/workflows/approvals")).at("data")).to.deep.equal([]);
  });

  it("fails where a run would, with what it would have called until then", async () => {
    const workflowId = await harness.create([
      { type: "webhook", id: "first", url: url(), method: "POST" },
      { type: "webhook", id: "second", url: "{{ input.url }}", method: "POST" },
      { type: "webhook", id: "third", url: url(), method: "POST" },
    ]);
    const run = await dryRun(workflowId, { url: "http://127.0.0.1:1/x" });
    expect(run.at("status"), run.text).to.equal("failed");
    expect(run.at("error.code")).to.equal("source_refused");
    expect((run.at("calls") as { id: string }[]).map(({ id }) => id)).to.deep.equal(["first"]);
    const noSuchField = await dryRun(workflowId, {});
    expect(noSuchField.at("error.param"), noSuchField.text).to.equal("steps[1].url");
  });

  it("refuses what a run refuses, and others' workflows", async () => {
    const inputSchema = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
    const workflowId = await harness.create([set("n", { n: "{{ input.n }}" })], { inputSchema });
    expect((await dryRun(workflowId, { n: 1 })).at("output")).to.deep.equal({ n: 1 });
    expect((await dryRun(workflowId, {})).status).to.equal(400);
    const other = await harness.stranger.post(`/workflows/${workflowId}/execute?dryRun=true`, { input: { n: 1 } });
    expect(other.status).to.equal(404);
    expect((await harness.member.post(`/workflows/${workflowId}/execute?dryRun=maybe`, {})).status).to.equal(400);
  });

  it("neither takes the idempotency key of a run nor is answered as one", async () => {
    const workflowId = await harness.create([set("n", { n: "{{ input }}" })]);
    const key = { "idempotency-key": "trial-and-run" };
    const post = (query: string, input: number) =>
      harness.member.post(`/workflows/${workflowId}/execute${query}`, { input }, { headers: key });
    const first = await post("?dryRun=true", 1);
    expect([first.at("output.n"), first.headers.get("x-svc-ignored")], first.text).to.deep.equal([
      1,
      "Idempotency-Key",
    ]);
    expect((await post("?dryRun=true", 2)).at("output.n"), "another trial under the key").to.equal(2);
    const run = await post("", 3);
    expect(run.status, run.text).to.equal(202);
    const trial = await post("?dryRun=true", 3);
    expect([trial.status, trial.at("dryRun"), trial.at("output.n")], trial.text).to.deep.equal([200, true, 3]);
    expect(trial.headers.get("idempotent-replayed")).to.equal(null);
    const repeat = await post("", 3);
    expect([repeat.at("runId"), repeat.headers.get("idempotent-replayed")]).to.deep.equal([run.at("runId"), "true"]);
    const runs = await harness.member.get(`/workflows/${workflowId}/runs`);
    expect(runs.at("data")).to.have.length(1);
  });

  it("of a draft keeps nothing, and refuses what a creation refuses", async () => {
    const inputSchema = { type: "object", required: ["n"], properties: { n: { type: "number" } } };
    const draft = (steps: unknown[]) => ({ name: "Draft", inputSchema, steps });
    const ask = (workflow: unknown, input?: unknown) => harness.member.post("/workflows/dry-run", { workflow, input });
    const before = (await harness.member.get("/workflows?limit=200")).at("data");
    const steps = [
      { type: "webhook", id: "send", url: url(), method: "POST", body: { n: "{{ input.n }}" } },
      set("n", { n: "{{ input.n }}" }),
    ];
    const run = await ask(draft(steps), { n: 7 });
    expect([run.status, run.at("status"), run.at("output")], run.text).to.deep.equal([200, "completed", { n: 7 }]);
    expect(run.at("calls.0"), run.text).to.deep.include({ id: "send", body: { n: 7 } });
    expect((await ask(draft(steps), {})).status).to.equal(400);
    const broken = await ask(draft([set("n", { n: "{{ input.n +  }}" })]), { n: 1 });
    expect([broken.status, broken.at("error.param")], broken.text).to.deep.equal([400, "steps[0].values.n"]);
    const none = await ask(draft([]), { n: 1 });
    expect([none.status, none.at("error.param")], none.text).to.deep.equal([400, "workflow.steps"]);
    expect((await harness.member.get("/workflows?limit=200")).at("data")).to.deep.equal(before);
    expect(asked).to.equal(0);
  });

  it("ends with all items of a long list counted, and refuses one that is too long", async () => {
    const workflowId = await harness.create([
      { type: "for_each", items: "input", do: [{ type: "webhook", url: url(), method: "POST" }] },
    ]);
    const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);
    const run = await dryRun(workflowId, upTo(1_500));
    expect(run.status, run.text.slice(0, 300)).to.equal(200);
    expect([run.at("status"), run.at("callCount")]).to.deep.equal(["completed", 1_500]);
    expect(run.at("calls")).to.have.length(1_000);
    const tooLong = await dryRun(workflowId, upTo(9_000));
    expect(tooLong.at("error.code"), tooLong.text.slice(0, 300)).to.equal("quota_exceeded");
  });
});
