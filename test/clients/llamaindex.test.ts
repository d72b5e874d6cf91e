import type {
  BaseTool,
  ChatMessage,
  ChatResponseChunk,
  ToolCallLLM,
  ToolCallLLMMessageOptions,
} from "@llamaindex/core/llms";
import { tool } from "@llamaindex/core/tools";
import { OpenAI, OpenAIResponses } from "@llamaindex/openai";
import { expect } from "chai";
import { z } from "zod";
import {
  offline,
  question,
  reported,
  startWeatherPlatform,
  type WeatherPlatform,
  weatherModels,
} from "../support/weather-models.ts";

const asked = { role: "user" as const, content: question };

describe("@llamaindex/openai with its defaults", function () {
  this.timeout(60_000);
  let platform: WeatherPlatform;
  before(async () => {
    platform = await startWeatherPlatform();
  });
  after(() => platform?.close());

  const weather = tool({
    name: "weather",
    description: "The weather of a town",
    parameters: z.object({ town: z.string() }),
    execute: () => reported,
  });

  const texts = {
    // The chunk of each event repeats the text of the last one that had some, whatever the server.
    OpenAIResponses: (chunks: readonly ChatResponseChunk[]) =>
      chunks.filter(({ raw }) => Object(raw).type === "response.output_text.delta"),
    OpenAI: (chunks: readonly ChatResponseChunk[]) => chunks,
  };
  for (const [kind, model] of Object.entries(weatherModels)) {
    const open = (): Record<keyof typeof texts, ToolCallLLM> => {
      const { test } = platform;
      const about = { model, baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 };
      return { OpenAIResponses: new OpenAIResponses(about), OpenAI: new OpenAI(about) };
    };
    const input = model === offline ? { town: question } : { town: "Graz" };

    for (const name of ["OpenAIResponses", "OpenAI"] as const) {
      const streamed = async (messages: ChatMessage<ToolCallLLMMessageOptions>[], tools: BaseTool[] = []) => {
        const chunks = await Array.fromAsync(await open()[name].chat({ messages, tools, stream: true }));
        const text = texts[name](chunks).map(({ delta }) => delta);
        const toolCalls = chunks.map(({ options }) => options && "toolCall" in options && options.toolCall);
        return { text: text.join(""), toolCalls: toolCalls.findLast(Boolean) };
      };

      it(`answers ${name}, as JSON and as a stream, on ${kind}`, async () => {
        const { message } = await open()[name].chat({ messages: [asked] });
        expect(message.content).to.be.a("string").that.is.not.equal("");
        expect((await streamed([asked])).text).to.equal(message.content);
      });

      it(`runs tools for ${name}, as JSON and as a stream, on ${kind}`, async () => {
        const client = open()[name];
        const tools = [weather];
        const { toolCalls, newMessages } = await client.exec({ messages: [asked], tools });
        const [{ id } = expect.fail("no tool was called")] = toolCalls;
        expect(toolCalls.map((call) => [call.name, call.input])).to.deep.equal([["weather", input]]);
        const messages = [asked, ...newMessages];
        const { newMessages: last } = await client.exec({ messages, tools });
        expect(JSON.stringify(last)).to.include("7431");
        const [call] = (await streamed([asked], tools)).toolCalls || [];
        expect([call?.name, readInput(call?.input)]).to.deep.equal(["weather", input]);
        expect(id).to.be.a("string").that.is.not.equal("");
        expect((await streamed(messages, tools)).text).to.include("7431");
      });
    }
  }
});

/** The arguments of a streamed call: a text from the chat's client, an object from the other. */
const readInput = (input: unknown): unknown => (typeof input === "string" ? JSON.parse(input) : input);
