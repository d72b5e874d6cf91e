import { expect } from "chai";
import { type ApiResponse, valueAt } from "../support/http-client.ts";
import { postStateless } from "../support/mcp-stateless.ts";
import { openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const able = { elicitation: {} };
const ask = (id: string) => ({ type: "human_approval", id, assigneeRole: "admin", message: `The ${id}?` });
const yes = { action: "accept", content: { confirm: true } };

describe("a tool call of 2026-07-28 that awaits a decision", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    await harness.create([ask("first"), ask("second")], { publish: { name: "twice", description: "Asks twice." } });
  });
  after(() => harness?.close());

  const call = (more: object = {}, who: "member" | "admin" | "stranger" = "admin", capabilities: object = able) =>
    postStateless(harness[who], "tools/call", { name: "twice", arguments: {}, ...more }, { capabilities });
  /** The question that a result asks, and the state to send back with the answer. */
  const questionOf = (asked: ApiResponse) => {
    expect(asked.at("result.resultType"), asked.text).to.equal("input_required");
    const [[approvalId, request] = ["", {}]] = Object.entries(asked.at("result.inputRequests") as object);
    return {
      approvalId,
      message: valueAt(request, "params.message"),
      requestState: asked.string("result.requestState"),
    };
  };
  const answer = (asked: ApiResponse, value: unknown, who?: "member" | "admin") => {
    const { approvalId, requestState } = questionOf(asked);
    return call({ requestState, inputResponses: { [approvalId]: value, other: {} } }, who);
  };

  it("asks one question after the other, and returns the result of the same run at last", async () => {
    const first = await call();
    expect(questionOf(first).message).to.equal("The first?");
    const second = await answer(first, yes);
    expect(questionOf(second).message).to.equal("The second?");
    expect(questionOf(second).requestState).to.equal(questionOf(first).requestState);
    const ended = await answer(second, yes);
    expect([ended.at("result.resultType"), ended.at("result.structuredContent.status")]).to.deep.equal([
      "complete",
      "completed",
    ]);
    const again = await call({ requestState: questionOf(first).requestState });
    expect(again.at("result.structuredContent.runId")).to.equal(ended.at("result.structuredContent.runId"));
  });

  it("asks again without an answer, refuses a wrong one, and leaves the decision to others after a decline", async () => {
    const asked = await call();
    const again = await call({ requestState: questionOf(asked).requestState });
    expect(questionOf(again).approvalId).to.equal(questionOf(asked).approvalId);
    for (const wrong of [7, { action: "accept", content: { confirm: "yes" } }]) {
      expect((await answer(asked, wrong)).at("error.code")).to.equal(-32_602);
    }
    expect((await call({ requestState: questionOf(asked).requestState, inputResponses: 7 })).at("error.code")).to.equal(
      -32_602,
    );
    const left = await answer(asked, { action: "decline" });
    expect(left.at("result.structuredContent.jobId")).to.equal(questionOf(asked).requestState);
    const { approvalId } = questionOf(asked);
    expect((await harness.admin.get(`/workflows/approvals/${approvalId}`)).at("status")).to.equal("pending");
    const rejected = await answer(asked, { action: "accept", content: { confirm: false } });
    expect(rejected.at("result.structuredContent.status")).to.equal("rejected");
  });

  it("asks only callers that may decide and support elicitation, and takes no answer of others", async () => {
    for (const [who, capabilities] of [
      ["member", able],
      ["admin", {}],
    ] as const) {
      const { at } = await call({}, who, capabilities);
      expect([at("result.resultType"), at("result.structuredContent.kind")]).to.deep.equal(["complete", "workflow"]);
    }
    const asked = await call();
    const unheard = await answer(asked, yes, "member");
    expect(unheard.at("result.structuredContent.status")).not.to.equal("completed");
    expect(questionOf(await call({ requestState: questionOf(asked).requestState })).message).to.equal("The first?");
  });

  it("continues no call of another tool or of other arguments", async () => {
    const publish = { name: "twice_too", description: "Asks twice." };
    await harness.create([ask("first"), ask("second")], { publish });
    const asked = await call();
    const { approvalId, requestState } = questionOf(asked);
    const inputResponses = { [approvalId]: yes };
    for (const other of [
      { name: publish.name },
      { arguments: { x: 1 } },
      { name: "svc_job", arguments: { jobId: requestState } },
    ]) {
      const refused = await call({ ...other, requestState, inputResponses });
      expect([refused.at("error.code"), refused.at("error.message")], JSON.stringify(other)).to.deep.equal([
        -32_602,
        "This requestState is of another call: send it with the same tool and the same arguments.",
      ]);
    }
    expect((await harness.admin.get(`/workflows/approvals/${approvalId}`)).at("status")).to.equal("pending");
    expect(questionOf(await answer(asked, yes)).message).to.equal("The second?");
  });

  it("asks each call by which a job is followed, and takes the answer of any of them", async () => {
    const started = questionOf(await call());
    const look = { name: "svc_job", arguments: { jobId: started.requestState } };
    const { approvalId, requestState } = questionOf(await call(look));
    const next = await call({ ...look, requestState, inputResponses: { [approvalId]: yes } });
    expect(questionOf(next).message).to.equal("The second?");
    expect(questionOf(await call({ requestState: started.requestState })).message).to.equal("The second?");
  });

  it("refuses a state that is malformed or of another tenant", async () => {
    const { requestState } = questionOf(await call());
    for (const state of [
      `${requestState}x`,
      "",
      7,
      null,
      { toString: 1, valueOf: 1 },
      "job_01J00000000000000000000000",
    ]) {
      expect((await call({ requestState: state })).at("error.code"), JSON.stringify(state)).to.equal(-32_602);
    }
    const theirs = { name: "svc_job", arguments: { jobId: requestState }, requestState };
    const { at } = await postStateless(harness.stranger, "tools/call", theirs, { capabilities: able });
    expect(at("error.code")).to.equal(-32_602);
  });
});
