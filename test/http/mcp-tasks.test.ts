import { expect } from "chai";
import { type ApiResponse, valueAt } from "../support/http-client.ts";
import { rpc, toolCall } from "../support/mcp-call.ts";
import { postStateless } from "../support/mcp-stateless.ts";
import { pollUntil } from "../support/poll-until.ts";
import { openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const tasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const able = { ...tasks, elicitation: {} };
const given = {
  pattern: "chain-of-thought",
  profile: "coding",
  input: "Why do users lose their sessions after deploys?",
};
const ask = { type: "human_approval", id: "sign", assigneeRole: "admin", message: "Send it?" };

describe("tasks of the tool server", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness({ env: { TOOL_WAIT_MS: "0" } });
    harness.model.play(() => ({ text: "Because." }));
  });
  after(() => harness?.close());

  const send = (who: "member" | "admin" | "stranger", method: string, params: object, capabilities: object = able) =>
    postStateless(harness[who], method, { ...params }, { capabilities });
  const get = (who: "member" | "admin" | "stranger", taskId: string, capabilities?: object) =>
    send(who, "tasks/get", { taskId }, capabilities);
  const until = (taskId: string, ...states: string[]) =>
    pollUntil(async () => {
      const task = await get("admin", taskId);
      return states.includes(String(task.at("result.status"))) ? task : null;
    });
  const errorOf = ({ status, at }: ApiResponse) => [status, at("error.code")];
  /** A run that waits for a decision; its job. */
  const waiting = async () => {
    const workflowId = await harness.create([ask]);
    const run = await harness.reach(workflowId, await harness.start(workflowId), "awaiting_approval");
    return { taskId: run.string("jobId"), approvalId: run.string("awaiting.approvalId") };
  };

  it("are the jobs of calls that take long, with the tool's result at the end", async () => {
    const created = await send("member", "tools/call", { name: "svc_composite_execute", arguments: given });
    expect(created.at("result.resultType")).to.equal("task");
    const taskId = created.string("result.taskId");
    expect(created.body).not.to.have.nested.property("result.content");
    expect(created.at("result.createdAt")).to.match(/^\d{4}-.*Z$/);
    expect([created.at("result.ttlMs"), created.at("result.pollIntervalMs")]).to.deep.equal([null, 1_000]);
    const ended = await until(taskId, "completed");
    expect(ended.at("result.resultType")).to.equal("complete");
    expect(ended.at("result.result.structuredContent.output")).to.equal("Because.");
    expect(ended.at("result.ttlMs")).to.be.greaterThan(0);
    const job = await harness.member.get(`/jobs/${taskId}`);
    expect(job.at("result")).to.deep.equal(ended.at("result.result.structuredContent"));
  });

  it("are given to those alone that declare them; others get the ids of the job", async () => {
    const call = { name: "svc_composite_execute", arguments: given };
    const plain = await send("member", "tools/call", call, {});
    expect([plain.at("result.resultType"), plain.at("result.structuredContent.kind")]).to.deep.equal([
      "complete",
      "composite",
    ]);
    const jobId = plain.string("result.structuredContent.jobId");
    for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
      const refused = await send("member", method, { taskId: jobId, inputResponses: {} }, {});
      expect(errorOf(refused), method).to.deep.equal([400, -32_021]);
      expect(refused.at("error.data.requiredCapabilities")).to.deep.equal(tasks);
    }
  });

  it("do not exist for another tenant, nor does one of no job", async () => {
    const { taskId } = await waiting();
    for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
      for (const [who, id] of [
        ["stranger", taskId],
        ["member", "job_01J00000000000000000000000"],
        ["member", "x"],
      ] as const) {
        const refused = await send(who, method, { taskId: id, inputResponses: {} });
        expect(errorOf(refused), method).to.deep.equal([200, -32_602]);
        expect(refused.at("error.message")).to.equal("There is no such task.");
      }
    }
    expect((await get("admin", taskId)).at("result.status")).to.equal("input_required");
  });

  it("ask for a person's decision, of the role that may make it, and go on with it", async () => {
    const { taskId, approvalId } = await waiting();
    expect((await get("member", taskId)).at("result.status"), "a member may not decide").to.equal("working");
    expect((await get("admin", taskId, tasks)).at("result.status"), "without elicitation").to.equal("working");
    const asked = await get("admin", taskId);
    expect(asked.at("result.status")).to.equal("input_required");
    const question = valueAt(asked.at("result.inputRequests"), approvalId);
    expect(question).to.deep.include({ method: "elicitation/create" });
    expect(valueAt(question, "params.message")).to.equal("Send it?");
    const answer = (who: "member" | "admin", value: unknown) =>
      send(who, "tasks/update", { taskId, inputResponses: { [approvalId]: value, other: {} } });
    for (const wrong of [{ action: "accept", content: { confirm: "yes" } }, { action: "?" }, 7]) {
      expect(errorOf(await answer("admin", wrong)), JSON.stringify(wrong)).to.deep.equal([200, -32_602]);
    }
    const later = await answer("admin", { action: "decline" });
    expect(later.at("result.resultType")).to.equal("complete");
    const member = await answer("member", { action: "accept", content: { confirm: true } });
    expect(member.at("result.resultType"), "not asked, so not heard").to.equal("complete");
    expect((await get("admin", taskId)).at("result.status")).to.equal("input_required");
    const decided = await answer("admin", { action: "accept", content: { confirm: true, comment: "Go." } });
    expect(decided.at("result.resultType")).to.equal("complete");
    const ended = await until(taskId, "completed");
    expect(ended.at("result.result.structuredContent.status")).to.equal("completed");
    const approval = await harness.admin.get(`/workflows/approvals/${approvalId}`);
    expect([approval.at("status"), approval.at("comment")]).to.deep.equal(["approved", "Go."]);
    const again = await answer("admin", { action: "accept", content: { confirm: false } });
    expect(again.at("result.resultType"), "what is decided stays").to.equal("complete");
  });

  it("are cancelled, also a second time", async () => {
    const { taskId } = await waiting();
    for (let turn = 0; turn < 2; turn += 1) {
      const { at, body } = await send("member", "tasks/cancel", { taskId });
      expect(at("result.resultType")).to.equal("complete");
      expect(body).not.to.have.nested.property("result.taskId");
    }
    const task = await get("member", taskId);
    expect(task.at("result.status")).to.equal("cancelled");
    expect(task.body).not.to.have.nested.property("result.result");
  });

  it("complete with an error for their result when the tool failed", async () => {
    harness.model.play(() => ({ status: 400 }));
    try {
      const created = await send("member", "tools/call", { name: "svc_composite_execute", arguments: given });
      const ended = await until(created.string("result.taskId"), "completed", "failed");
      expect([ended.at("result.status"), ended.at("result.result.isError")]).to.deep.equal(["completed", true]);
    } finally {
      harness.model.play(() => ({ text: "Because." }));
    }
  });

  describe("of the revision 2025-11-25", () => {
    const headers = { "mcp-protocol-version": "2025-11-25" };
    const old = (who: "member" | "admin" | "stranger", method: string, params: object) =>
      harness[who].post("/mcp", rpc(1, method, params), { headers });

    it("are announced, made at once when a call asks for one, read and cancelled", async () => {
      const offer = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
      const greeted = await harness.member.post("/mcp", rpc(1, "initialize", offer));
      expect(greeted.at("result.capabilities.tasks.requests.tools.call")).to.deep.equal({});
      const listed = (await old("member", "tools/list", {})).at("result.tools") as Record<string, unknown>[];
      const supports = listed.filter(({ execution }) => valueAt(execution, "taskSupport") === "optional");
      expect(supports.map(({ name }) => name)).to.have.members(["svc_agent_run", "svc_composite_execute", "svc_job"]);
      const call = valueAt(toolCall(1, "svc_composite_execute", given), "params") as object;
      const created = await old("member", "tools/call", { ...call, task: { ttl: 60_000 } });
      const taskId = created.string("result.task.taskId");
      expect(created.at("result.task.pollInterval")).to.equal(1_000);
      await until(taskId, "completed");
      const task = await old("member", "tasks/get", { taskId });
      expect([task.at("result.status"), task.at("result.resultType")]).to.deep.equal(["completed", undefined]);
      expect(errorOf(await old("member", "tasks/cancel", { taskId })), "it has ended").to.deep.equal([200, -32_602]);
      expect(errorOf(await old("stranger", "tasks/get", { taskId }))).to.deep.equal([200, -32_602]);
      expect(errorOf(await old("stranger", "tasks/result", { taskId }))).to.deep.equal([200, -32_602]);
      const { taskId: open } = await waiting();
      expect((await old("member", "tasks/cancel", { taskId: open })).at("result.status")).to.equal("cancelled");
    });

    it("do not exist before it, and end with it", async () => {
      for (const revision of [undefined, "2025-06-18"]) {
        const sent: Record<string, string> = revision === undefined ? {} : { "mcp-protocol-version": revision };
        for (const method of ["tasks/get", "tasks/result", "tasks/update"]) {
          const refused = await harness.member.post("/mcp", rpc(1, method, { taskId: "x" }), { headers: sent });
          expect(errorOf(refused), method).to.deep.equal([200, -32_601]);
        }
      }
      for (const method of ["tasks/result", "tasks/list"]) {
        expect(errorOf(await send("member", method, { taskId: "x" })), method).to.deep.equal([404, -32_601]);
      }
    });
  });
});
