import { ChatOpenAI } from "@langchain/openai";
import { expect } from "chai";
import OpenAI from "openai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";

const input = "What is 4 + 2?";
const messages = [{ role: "user" as const, content: input }];
const model = "agent:Adder";

describe("the official openai client with agents and patterns as models", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let openai: OpenAI;
  before(async () => {
    harness = await openAgentHarness();
    openai = new OpenAI({ baseURL: `${harness.url}/v1`, apiKey: harness.key, maxRetries: 0 });
    const about = { name: "Adder", model: harness.model, systemPrompt: "You add.", tools: [{ type: "calculator" }] };
    await harness.member.post("/agents", about);
  });
  beforeEach(() =>
    harness.upstream.play(({ turn, tools }) =>
      turn === 1 && tools.length > 0
        ? { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] }
        : { text: "It is 6." },
    ),
  );
  after(() => harness.close());

  it("finds them in its list of models, and chats with each kind", async () => {
    const listed = (await Array.fromAsync(openai.models.list())).map(({ id }) => id);
    for (const id of [model, "composite:chain-of-thought"]) {
      expect(listed).to.include(id);
      expect((await openai.models.retrieve(id)).id).to.equal(id);
      const { choices, usage } = await openai.chat.completions.create({ model: id, messages });
      expect(choices[0]?.message.content).to.equal("It is 6.");
      expect(usage?.total_tokens).to.equal(30);
    }
  });

  it("streams a chat to its end", async () => {
    const completion = await openai.chat.completions.stream({ model, messages }).finalChatCompletion();
    expect(completion.choices[0]).to.deep.include({ finish_reason: "stop" });
    expect(completion.choices[0]?.message).to.include({ role: "assistant", content: "It is 6." });
  });

  it("has the agent's tool calls as items, the same as JSON and as a stream", async () => {
    const response = await openai.responses.create({ model, input });
    expect(response.output_text).to.equal("It is 6.");
    expect(response.output.map(({ type }) => type)).to.deep.equal(["reasoning", "mcp_call", "message"]);
    expect(response.output[1]).to.include({ type: "mcp_call", name: "calculator", output: "6", status: "completed" });
    const events = await Array.fromAsync(await openai.responses.create({ model, input, stream: true }));
    const sequence = events.map((event) => event.type.replace("response.", ""));
    const begins = sequence.indexOf("mcp_call.in_progress");
    expect(sequence.slice(begins - 1, begins + 5)).to.deep.equal([
      "output_item.added",
      "mcp_call.in_progress",
      "mcp_call_arguments.delta",
      "mcp_call_arguments.done",
      "mcp_call.completed",
      "output_item.done",
    ]);
    const last = events.at(-1);
    if (last?.type !== "response.completed") throw new Error("it has no end");
    const outputOf = ({ output }: OpenAI.Responses.Response) => output.map(({ id: _id, ...item }) => item);
    expect(outputOf(last.response)).to.deep.equal(outputOf(response));
    expect((await openai.responses.stream({ model, input }).finalResponse()).output_text).to.equal("It is 6.");
  });

  it("goes on with a response, of another model too, and sends its items back", async () => {
    const first = await openai.responses.create({ model, input });
    for (const next of [model, harness.model]) {
      harness.upstream.play(() => ({ text: "7." }));
      const answer = await openai.responses.create({ model: next, input: "One more?", previous_response_id: first.id });
      expect(answer.output_text).to.equal("7.");
      const said = harness.upstream.calls[0]?.messages.filter(({ role }) => role !== "system");
      expect(said?.map(({ content }) => content)).to.deep.equal([input, "It is 6.", "One more?"]);
    }
    const items = [
      { role: "user" as const, content: input },
      ...first.output,
      { role: "user" as const, content: "More?" },
    ];
    const { data, response } = await openai.responses
      .create({ model: harness.model, input: items as OpenAI.Responses.ResponseInput, store: false })
      .withResponse();
    expect(data.output_text).to.equal("7.");
    expect(response.headers.get("x-svc-ignored")).to.include("input[2]");
  });

  it("raises its own errors", async () => {
    const failing = (name: string, content = "Hi") =>
      openai.chat.completions.create({ model: name, messages: [{ role: "user", content }] }).then(
        () => null,
        (error: unknown) => error,
      );
    expect(await failing("agent:Nobody"))
      .to.be.instanceOf(OpenAI.NotFoundError)
      .and.include({ code: "model_not_found" });
    expect(await failing("composite:critique:financial", "My card number is 4242 4242 4242 4242"))
      .to.be.instanceOf(OpenAI.UnprocessableEntityError)
      .and.include({ code: "compliance_blocked", param: "messages[0].content" });
  });

  it("has the same through LangChain's client", async () => {
    const options = { apiKey: harness.key, configuration: { baseURL: `${harness.url}/v1` }, maxRetries: 0 };
    for (const useResponsesApi of [false, true]) {
      const chat = new ChatOpenAI({ ...options, model, useResponsesApi });
      expect((await chat.invoke(input)).text).to.equal("It is 6.");
      let text = "";
      for await (const chunk of await chat.stream(input)) text += chunk.text;
      expect(text).to.equal("It is 6.");
    }
  });
});
