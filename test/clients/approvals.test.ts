import { expect } from "chai";
import OpenAI from "openai";
import type { Response } from "openai/resources/responses/responses";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { makeApprovalRuns } from "../support/approval-run.ts";
import { connectToday, openTaskSession } from "../support/mcp-clients.ts";
import { pollUntil } from "../support/poll-until.ts";

const model = "agent:Payer";

describe("approvals of tool calls by official clients", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let runs: ReturnType<typeof makeApprovalRuns>;
  let openai: OpenAI;
  let adminKey: string;
  before(async () => {
    harness = await openAgentHarness({ RECONCILE_EVERY_MS: "300", TOOL_WAIT_MS: "20000" });
    runs = makeApprovalRuns(harness);
    const caller = (await harness.platform.tenancy.authenticate(harness.key)) ?? expect.fail("an unknown key");
    const { tenantId } = caller;
    adminKey = (await harness.platform.tenancy.createKey({ tenantId, role: "admin", subject: "ada@test" })).key;
    openai = new OpenAI({ baseURL: `${harness.url}/v1`, apiKey: adminKey, maxRetries: 0 });
    const publish = { name: "payer", description: "Pays." };
    await runs.createAgent([runs.payTool()], { allowSelfApproval: true, publish });
  });
  after(() => harness?.close());
  beforeEach(() => {
    runs.effects.splice(0);
    runs.callOnce(runs.pay(1), runs.pay(2));
  });

  it("are answered by elicitation, one after the other, by @modelcontextprotocol/client", async () => {
    const asked: string[] = [];
    const client = await connectToday(
      { url: harness.url, key: adminKey },
      { answer: (text) => asked.push(text) === 1 },
    );
    try {
      const { structuredContent } = await client.callTool({ name: "payer", arguments: { input: "Pay." } });
      expect(structuredContent).to.include({ status: "completed" });
    } finally {
      await client.close();
    }
    expect(asked).to.have.lengthOf(2);
    expect(asked[0]).to.contain("The agent Payer is about to call pay with").and.to.contain('{\\"amount\\":1}');
    expect(runs.paid(), "the second one was rejected").to.deep.equal([1]);
  });

  it("are answered in a task of @modelcontextprotocol/ext-tasks", async () => {
    const { session, close } = await openTaskSession({ url: harness.url, key: adminKey }, () => true);
    try {
      const execution = await session.callTool("payer", { input: "Pay." });
      expect(execution.kind).to.equal("task");
      await execution.settle();
    } finally {
      await close();
    }
    expect(runs.paid()).to.deep.equal([1, 2]);
  });

  const settled = (id: string) =>
    pollUntil(
      async () => {
        const response = await openai.responses.retrieve(id);
        return ["queued", "in_progress"].includes(response.status ?? "") ? undefined : response;
      },
      { everyMs: 100, what: "the end of a response" },
    );
  const requestsOf = ({ output }: Response) => output.filter((item) => item.type === "mcp_approval_request");
  const answerTo = (response: Response, approve: readonly boolean[]) =>
    requestsOf(response).map(({ id }, place) => ({
      type: "mcp_approval_response" as const,
      approval_request_id: id,
      approve: approve[place] ?? true,
      ...(approve[place] === false ? { reason: "Too much." } : {}),
    }));

  it("are items of a response in the background, and go on with what openai answers to them", async () => {
    const first = await settled((await openai.responses.create({ model, input: "Pay.", background: true })).id);
    expect(first.status).to.equal("completed");
    expect(first.output.map(({ type }) => type)).to.deep.equal([
      "reasoning",
      "mcp_approval_request",
      "mcp_approval_request",
    ]);
    const [one] = requestsOf(first);
    expect(one).to.include({ name: "pay", server_label: "Payer" });
    expect(JSON.parse(one?.arguments ?? "")).to.deep.equal(runs.pay(1).arguments);
    expect(runs.effects).to.deep.equal([]);
    const input = answerTo(first, [true, false]);
    const next = await openai.responses.create({ model, previous_response_id: first.id, input, background: true });
    const second = await settled(next.id);
    const calls = second.output.filter((item) => item.type === "mcp_call");
    expect(calls.map(({ status, approval_request_id }) => [status, approval_request_id]).sort()).to.deep.equal(
      requestsOf(first).map(({ id }, place) => [place === 0 ? "completed" : "failed", id]),
    );
    expect(second.output_text).to.contain("paid").and.to.contain("Their comment: Too much.");
    expect(runs.paid()).to.deep.equal([1]);
    expect(harness.upstream.calls).to.have.lengthOf(2);
    const third = await openai.responses.create({ model, previous_response_id: second.id, input: "And now?" });
    expect(third.status).to.equal("completed");
  });

  it("are items of a response that its caller waits for, as JSON and as a stream, also one after the other", async () => {
    for (const stream of [false, true]) {
      runs.effects.splice(0);
      runs.callOnce(runs.pay(1), runs.pay(2));
      const create = async (body: object): Promise<Response> => {
        if (!stream) return (await openai.responses.create({ model, input: "", ...body, stream: false })) as Response;
        const events = await Array.fromAsync(
          await openai.responses.create({ model, input: "", ...body, stream: true }),
        );
        const end = events.at(-1);
        return end?.type === "response.completed" ? end.response : expect.fail(JSON.stringify(end));
      };
      const first = await create({ input: "Pay." });
      const [one, two] = answerTo(first, [true, true]);
      const second = await create({ previous_response_id: first.id, input: [one] });
      const left = requestsOf(second).map(({ id }) => id);
      if (left.length > 0) expect(left).to.deep.equal([two?.approval_request_id]);
      const third = await create({ previous_response_id: second.id, input: [two] });
      expect(JSON.stringify(third.output.at(-1))).to.contain("paid");
      expect(runs.paid()).to.deep.equal([1, 2]);
    }
  });

  it("refuse what decides nothing", async () => {
    const first = await openai.responses.create({ model, input: "Pay." });
    const [one] = answerTo(first, [true]);
    const refused = async (body: object) => {
      const error: unknown = await openai.responses.create({ model, input: [one], ...body } as never).catch((e) => e);
      return [Reflect.get(Object(error), "status"), Reflect.get(Object(error), "param")];
    };
    const missing = { ...one, approval_request_id: "apr_01J0000000000000000000000A" };
    expect((await refused({ input: [missing] }))[0]).to.equal(404);
    expect(await refused({ model: harness.model })).to.deep.equal([400, "input[0]"]);
    const other = new OpenAI({ baseURL: `${harness.url}/v1`, apiKey: harness.key, maxRetries: 0 });
    const byMember: unknown = await other.responses.create({ model, input: [one] } as never).catch((error) => error);
    expect(Reflect.get(Object(byMember), "status")).to.equal(403);
    expect(runs.effects).to.deep.equal([]);
  });
});
