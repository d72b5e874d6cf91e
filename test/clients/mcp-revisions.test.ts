import { expect } from "chai";
import { valueAt } from "../support/http-client.ts";
import { connectToday } from "../support/mcp-clients.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const description = "A tool of the tenant's own.";
const inputSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const greet = { type: "ai_completion", id: "greet", model: chatModel, prompt: "Greet {{ input.name }}" };

describe("the official client of today of the Model Context Protocol", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => ({ text: "Hello, Ada!" }));
    await harness.create([greet], { inputSchema, publish: { name: "greet", description } });
  });
  after(() => harness?.close());

  it("agrees on 2026-07-28, lists and calls, and checks results by their schemas", async () => {
    const client = await connectToday({ url: harness.test.url, key: harness.test.keys.member });
    try {
      expect(client.getNegotiatedProtocolVersion()).to.equal("2026-07-28");
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).to.include.members(["greet", "svc_chat", "svc_health"]);
      const greeted = await client.callTool({ name: "greet", arguments: { name: "Ada" } });
      expect(valueAt(greeted, "content[0].text")).to.equal("Hello, Ada!");
      expect(valueAt(greeted, "structuredContent.output")).to.equal("Hello, Ada!");
      const wrong = await client.callTool({ name: "greet", arguments: {} }).catch((error: unknown) => error);
      expect(valueAt(wrong, "code")).to.equal(-32_602);
    } finally {
      await client.close();
    }
  });
});
