import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "chai";
import { connectOld, connectToday } from "../support/mcp-clients.ts";
import { chatModel, openWorkflowHarness, set, type WorkflowHarness } from "../support/workflow-harness.ts";

const step = (id: string) => ({ type: "ai_completion", id, model: chatModel, prompt: `Say ${id}` });
const call = { name: "three_steps", arguments: {} };

describe("the progress of a tool call", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(({ input }) => ({ text: input }));
    const publish = { name: "three_steps", description: "Takes three steps." };
    await harness.create([step("one"), step("two"), step("three")], { publish });
  });
  after(() => harness?.close());

  const at = () => ({ url: harness.test.url, key: harness.test.keys.member });
  type Seen = { progress: number; message?: string | undefined };
  const expectSteps = (seen: Seen[], { structuredContent }: Record<string, unknown>) => {
    expect(seen.map(({ message }) => message)).to.deep.equal(["one: completed", "two: completed", "three: completed"]);
    const values = seen.map(({ progress }) => progress);
    expect(values).to.deep.equal([...new Set(values)].sort((a, b) => a - b));
    expect(structuredContent).to.include({ output: "Say three" });
  };

  it("is what the client of 2025-11-25 is notified of", async () => {
    const client = await connectOld(at());
    const seen: Seen[] = [];
    const result = await client.callTool(call, CallToolResultSchema, { onprogress: (one) => void seen.push(one) });
    await client.close();
    expectSteps(seen, result);
  });

  it("is what the client of 2026-07-28 is notified of", async () => {
    const client = await connectToday(at());
    const seen: Seen[] = [];
    const result = await client.callTool(call, { onprogress: (one) => void seen.push(one) });
    await client.close();
    expectSteps(seen, result);
  });

  it("of a workflow with an agent, a list and another workflow is what the client of 2026-07-28 is notified of", async () => {
    const agent = { name: "Helper", model: chatModel, systemPrompt: "Help.", tools: [] };
    const agentId = (await harness.member.post("/agents", agent)).string("agentId");
    const workflowId = await harness.create([step("inner")]);
    const inputSchema = { type: "object", properties: { names: { type: "array", items: { type: "string" } } } };
    await harness.create(
      [
        { type: "agent", id: "ask", agentId, input: "Say hello" },
        { type: "for_each", id: "loop", items: "input.names", do: [set("said", { to: "{{ item }}" })] },
        { type: "workflow", id: "last", workflowId },
      ],
      { inputSchema, publish: { name: "composed", description: "Asks, repeats and calls." } },
    );
    const client = await connectToday(at());
    expect(client.getNegotiatedProtocolVersion()).to.equal("2026-07-28");
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === "composed")?.inputSchema).to.deep.include(inputSchema);
    const seen: Seen[] = [];
    const composed = { name: "composed", arguments: { names: ["Ada", "Bo"] } };
    const result = await client.callTool(composed, { onprogress: (one) => void seen.push(one) });
    await client.close();
    expect(result.structuredContent).to.include({ status: "completed", output: "Say inner" });
    const messages = seen.map(({ message }) => message);
    expect(messages).to.include.members([
      ...["ask: started", "ask: completed", "loop: 2 of 2", "loop: completed"],
      ...["last: started", "last: completed"],
    ]);
    const values = seen.map(({ progress }) => progress);
    expect(values).to.deep.equal([...new Set(values)].sort((a, b) => a - b));
  });

  it("is none for a tool without a job, for wrong arguments, and without a token or a stream", async () => {
    const send = async (params: object, accept: string) => {
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
      const response = await harness.member.post("/mcp", message, { headers: { accept } });
      return [response.status, response.headers.get("content-type")?.split(";")[0]];
    };
    const both = "application/json, text/event-stream";
    const token = { _meta: { progressToken: "t" } };
    for (const [params, accept] of [
      [{ name: "svc_models", arguments: {}, ...token }, both],
      [{ name: "svc_none", arguments: {}, ...token }, both],
      [call, both],
      [{ ...call, ...token }, "application/json"],
      [{ ...call, _meta: { progressToken: {} } }, both],
    ] as const) {
      expect(await send(params, accept), JSON.stringify(params)).to.deep.equal([200, "application/json"]);
    }
  });
});
