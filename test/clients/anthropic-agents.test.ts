import Anthropic from "@anthropic-ai/sdk";
import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";

describe("messages from an agent in the place of a model", function () {
  this.timeout(30_000);
  let harness: AgentHarness;
  let client: Anthropic;
  before(async () => {
    harness = await openAgentHarness();
    client = new Anthropic({ baseURL: harness.url, apiKey: harness.key, maxRetries: 0 });
    const tools = [{ type: "calculator" }];
    await harness.member.post("/agents", { name: "Adder", model: harness.model, systemPrompt: "You add.", tools });
  });
  after(() => harness.close());

  const about = {
    model: "agent:Adder",
    max_tokens: 100,
    messages: [{ role: "user" as const, content: "What is 4 + 2?" }],
  };

  it("have the steps of the run as thinking, also as a stream", async () => {
    harness.upstream.play(({ turn }) =>
      turn === 1
        ? { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] }
        : { text: "It is 6." },
    );
    const content = [
      { type: "thinking", thinking: 'I add.\n[calculator] {"expression":"4 + 2"}\n', signature: "" },
      { type: "text", text: "It is 6." },
    ];
    const message = await client.messages.create(about);
    expect(message.content).to.deep.equal(content);
    expect(message.stop_reason).to.equal("end_turn");
    const streamed = await client.messages.stream(about).finalMessage();
    expect(streamed.content).to.deep.equal(content);
    expect([streamed.usage.input_tokens, streamed.usage.output_tokens]).to.deep.equal([20, 10]);
    const { model, messages } = about;
    expect((await client.messages.countTokens({ model, messages })).input_tokens).to.be.above(3);
  });

  it("are refused by the guard of a regulated profile in Anthropic's shape, before a model is asked", async () => {
    harness.upstream.play(() => ({ text: "Never asked." }));
    const messages = [{ role: "user" as const, content: "Patient SSN: 078-05-1120" }];
    const blocked = await client.messages
      .create({ ...about, messages, model: "composite:critique:healthcare" })
      .catch((error: unknown) => error);
    if (!(blocked instanceof Anthropic.BadRequestError)) throw new Error(`it is not refused: ${blocked}`);
    expect(blocked.type).to.equal("invalid_request_error");
    expect(blocked.message).not.to.include("078-05");
    expect(harness.upstream.calls).to.deep.equal([]);
  });
});
