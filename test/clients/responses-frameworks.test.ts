import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { HumanMessage } from "@langchain/core/messages";
import { tool as langchainTool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, tool as agentTool, OpenAIProvider, Runner } from "@openai/agents";
import { generateText, jsonSchema, type LanguageModel, Output, stepCountIs, streamText, tool } from "ai";
import { expect } from "chai";
import OpenAI from "openai";
import { z } from "zod";
import { describeTargets } from "../support/describe-targets.ts";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import type { WireRequest } from "../support/fake-provider/wire-format.ts";
import { makeClient } from "../support/http-client.ts";
import { pictureOf } from "../support/media.ts";
import type { TestPlatform } from "../support/start-platform.ts";

/** One model of each kind of provider. */
const models = {
  "OpenAI's wire": "gpt-6-luna",
  "a custom provider of the chat wire": "lab/small",
  "Anthropic's wire": "claude-haiku-5-5",
  "the offline model": "switchyard-offline",
} as const;
const question = "How is the weather in Graz?";
const reported = "The weather in Graz is rain of strength 7431.";
const handoff = "transfer_to_Weather_agent";

/** A model that hands over where it can, calls the tool once, and repeats what that returned. */
function play(body: WireRequest): Behaviour {
  const text = JSON.stringify(body);
  const call = (name: string, json: object) => ({
    toolCalls: [{ id: `call_${name}`, name, arguments: JSON.stringify(json) }],
  });
  const offers = (name: string) => JSON.stringify(body.tools ?? []).includes(`"${name}"`);
  if (offers(handoff)) return call(handoff, {});
  if (text.includes(reported)) return { pieces: ["It says: ", reported] };
  return offers("weather") ? call("weather", { town: "Graz" }) : { pieces: ["No ", "tool."] };
}

describeTargets("frameworks that speak the Responses API", {}, function (target) {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  before(async () => {
    upstream = await startFakeProvider();
    test = await target.start({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-openai-0123456789",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: upstream.origin,
        FETCH_ALLOW_ORIGINS: upstream.origin,
      },
    });
    if (target.wire) return;
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const model = { id: "small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 1, outputUsdPerMTok: 2 };
    const lab = { baseUrl: upstream.url, key: "sk-lab-0123456789", wire: "openai-chat", models: [model] };
    expect((await admin.request("PUT", "/ai/providers/custom/lab", { body: lab })).status).to.equal(200);
  });
  beforeEach(() => {
    upstream.reset();
    upstream.setDefault(play);
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const own = () => ({ baseURL: `${test.url}/v1`, apiKey: test.keys.member });
  /** What the last request to a provider held of the tool's result. */
  const expectReported = (text: string, kind: string) => {
    expect(text, kind).to.include("rain of strength 7431");
  };

  for (const [kind, id] of Object.entries(models)) {
    if (target.wire && id === models["a custom provider of the chat wire"]) continue; // what the first platform has already
    const name = target.model(id);
    describe(`@openai/agents on ${kind}`, () => {
      const weather = agentTool({
        name: "weather",
        description: "The weather of a town",
        parameters: z.object({ town: z.string() }),
        execute: async () => reported,
      });
      const runner = () =>
        new Runner({
          modelProvider: new OpenAIProvider({ openAIClient: new OpenAI({ ...own(), maxRetries: 0 }) }),
          tracingDisabled: true,
        });
      const agent = () =>
        new Agent({ name: "Weather agent", instructions: "Ask the tool.", model: name, tools: [weather] });

      it("runs tools", async () => {
        const { finalOutput = "" } = await runner().run(agent(), question);
        expectReported(finalOutput, kind);
      });

      it("streams", async () => {
        const stream = await runner().run(agent(), question, { stream: true });
        const texts: string[] = [];
        for await (const text of stream.toTextStream()) texts.push(text);
        await stream.completed;
        expectReported(texts.join(""), kind);
      });

      it("hands over to another agent", async () => {
        const triage = Agent.create({ name: "Triage", instructions: "Hand over.", model: name, handoffs: [agent()] });
        const result = await runner().run(triage, question);
        expect(result.lastAgent?.name).to.equal("Weather agent");
        expectReported(result.finalOutput ?? "", kind);
      });

      it("continues a stored response", async () => {
        const first = await runner().run(agent(), question);
        const next = await runner().run(agent(), "What was the weather in Graz again?", {
          previousResponseId: first.lastResponseId ?? "none",
        });
        expectReported(next.finalOutput ?? "", kind);
      });
    });

    const providers: Record<string, () => LanguageModel> = {
      "@ai-sdk/openai": () => createOpenAI(own())(name),
      "@ai-sdk/open-responses": () => {
        const { baseURL, apiKey } = own();
        return createOpenResponses({ name: "switchyard", url: `${baseURL}/responses`, apiKey })(name);
      },
    };
    for (const [provider, model] of Object.entries(providers)) {
      describe(`ai with ${provider} on ${kind}`, () => {
        const weather = tool({
          description: "The weather of a town",
          inputSchema: jsonSchema<{ town: string }>({
            type: "object",
            properties: { town: { type: "string" } },
            required: ["town"],
            additionalProperties: false,
          }),
          execute: async () => reported,
        });
        const ask = () => ({ model: model(), prompt: question, maxRetries: 0 });

        it("runs tools over several steps", async () => {
          const { text, steps, usage } = await generateText({ ...ask(), tools: { weather }, stopWhen: stepCountIs(3) });
          expectReported(text, kind);
          expect(steps).to.have.lengthOf(2);
          expect(usage.totalTokens).to.be.above(0);
        });

        it("streams tools over several steps", async () => {
          const result = streamText({ ...ask(), tools: { weather }, stopWhen: stepCountIs(3) });
          expectReported((await Array.fromAsync(result.textStream)).join(""), kind);
          expect((await result.usage).totalTokens).to.be.above(0);
        });

        it("shows a picture, and gets an object of a schema", async () => {
          upstream.next({ pieces: ['{"town":', '"Graz"}'] });
          const schema = jsonSchema<{ town: string }>({
            type: "object",
            properties: { town: { type: "string" } },
            required: ["town"],
            additionalProperties: false,
          });
          const { output } = await generateText({
            model: model(),
            maxRetries: 0,
            output: Output.object({ schema }),
            messages: [
              {
                role: "user",
                content: [
                  { type: "text", text: "Which town is this? The town is Graz." },
                  { type: "file", mediaType: "image/png", data: pictureOf(4, 4) },
                ],
              },
            ],
          });
          if (id === models["the offline model"]) {
            expect(output.town).to.match(/PNG of 4 by 4 pixels/);
            return; // it has no upstream
          }
          expect(output).to.deep.equal({ town: "Graz" });
          expect(JSON.stringify(upstream.requests.at(-1)?.body)).to.include(pictureOf(4, 4).slice(-60));
        });
      });
    }

    describe(`@langchain/openai with useResponsesApi on ${kind}`, () => {
      const { baseURL, apiKey } = { baseURL: () => own().baseURL, apiKey: () => own().apiKey };
      const model = () =>
        new ChatOpenAI({
          model: name,
          apiKey: apiKey(),
          configuration: { baseURL: baseURL() },
          useResponsesApi: true,
          maxRetries: 0,
        });
      const weather = langchainTool(async () => reported, {
        name: "weather",
        description: "The weather of a town",
        schema: z.object({ town: z.string() }),
      });

      it("calls tools and sends their results back, as JSON and as a stream", async () => {
        const withTools = model().bindTools([weather]);
        const asked = new HumanMessage(question);
        const answer = await withTools.invoke([asked]);
        const [call] = answer.tool_calls ?? [];
        if (!call) throw new Error("no tool was called");
        expect(call.name).to.equal("weather");
        const result = await weather.invoke({ ...call, type: "tool_call" });
        const conversation = [asked, answer, result];
        expectReported((await withTools.invoke(conversation)).text, kind);
        let text = "";
        for await (const chunk of await withTools.stream(conversation)) text += chunk.text;
        expectReported(text, kind);
      });
    });
  }
});
