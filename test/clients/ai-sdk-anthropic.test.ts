import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import { expect } from "chai";
import { describeTargets } from "../support/describe-targets.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { pictureOf } from "../support/media.ts";
import type { TestPlatform } from "../support/start-platform.ts";

const call = { id: "call_1", name: "weather", arguments: '{"town":"Graz"}' };
const picture = pictureOf(4, 4);
const pictureData = picture.replace("data:image/png;base64,", "");
const prompt = "What does a lease protect?";
const answer = "The lease protects a job.";

/** A model of each kind of provider, and what its server gets and says. */
const kinds = [
  {
    kind: "a server of OpenAI's chat format",
    id: "small",
    /** How the picture stands in what is sent. */
    picture,
    /** The reasoning that is sent back with the results of tools. */
    returned: undefined,
    /** The client asks for JSON by a tool, unless it knows the model. */
    asJson: (json: string) => ({ toolCalls: [{ id: "call_1", name: "json", arguments: json }] }),
  },
  {
    kind: "OpenAI",
    id: "gpt-5.6-luna",
    picture,
    returned: { type: "reasoning" },
    asJson: (json: string) => ({ toolCalls: [{ id: "call_1", name: "json", arguments: json }] }),
  },
  {
    kind: "Anthropic",
    id: "claude-opus-5-5",
    picture: pictureData,
    returned: { type: "thinking", thinking: "It may rain.", signature: "c2lnbmVk" },
    asJson: (json: string) => ({ pieces: [json] }),
  },
];

const weather = tool({
  description: "The weather of a town",
  inputSchema: jsonSchema<{ town: string }>({
    type: "object",
    properties: { town: { type: "string" } },
    required: ["town"],
  }),
  execute: async ({ town }) => `rain in ${town}`,
});

describeTargets("ai with @ai-sdk/anthropic", {}, function (target) {
  this.timeout(30_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  before(async () => {
    upstream = await startFakeProvider();
    test = await target.start({
      workers: false,
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: "small",
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: upstream.url.replace(/\/v1$/, ""),
      },
    });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const modelOf = (id: string) =>
    createAnthropic({ baseURL: `${test.url}/v1`, apiKey: test.keys.member })(target.model(id));
  const sent = () => JSON.stringify(upstream.requests.at(-1)?.body);

  for (const { kind, id, picture, returned, asJson } of kinds) {
    describe(`asks ${kind}`, () => {
      const ask = () => ({ model: modelOf(id), prompt, maxOutputTokens: 2_000, maxRetries: 0 });

      it("for a text, with usage, also as a stream", async () => {
        const { text, usage, finishReason } = await generateText(ask());
        expect([text, finishReason]).to.deep.equal([answer, "stop"]);
        expect([usage.inputTokens, usage.outputTokens]).to.deep.equal([11, 7]);
        const stream = streamText(ask());
        expect((await Array.fromAsync(stream.textStream)).join("")).to.equal(answer);
        const { inputTokens, outputTokens } = await stream.usage;
        expect([inputTokens, outputTokens]).to.deep.equal([11, 7]);
        expect(sent()).to.include(prompt);
      });

      it("with tools over several steps, whose reasoning goes back with the results, also as a stream", async () => {
        const run = {
          ...ask(),
          tools: { weather },
          stopWhen: stepCountIs(4),
          providerOptions: { anthropic: { thinking: { type: "adaptive" }, effort: "high" } },
        } as const;
        const turns = [
          { reasoning: "It may rain.", pieces: [], toolCalls: [call] },
          { toolCalls: [{ ...call, id: "call_2", arguments: '{"town":"Linz"}' }] },
          { pieces: ["It rains in Graz and in Linz."] },
        ];
        const expectRun = (text: string, reasoning: string | undefined) => {
          expect([text, reasoning]).to.deep.equal(["It rains in Graz and in Linz.", "It may rain."]);
          expect(upstream.requests).to.have.length(3);
          expect(sent()).to.include("rain in Graz").and.include("rain in Linz").and.include("call_2");
          const body = upstream.requests[1]?.body;
          const items = [body?.input ?? [], ...(body?.messages ?? []).map((turn) => Object(turn).content)].flat();
          if (returned) expect(items.find((item) => Object(item).type === returned.type)).to.deep.include(returned);
          upstream.reset();
        };
        upstream.next(...turns);
        const result = await generateText(run);
        expect(result.steps.map(({ toolResults }) => toolResults.map(({ output }) => output))).to.deep.equal([
          ["rain in Graz"],
          ["rain in Linz"],
          [],
        ]);
        expectRun(result.text, result.steps[0]?.reasoningText);
        upstream.next(...turns);
        const stream = streamText(run);
        await Array.fromAsync(stream.fullStream);
        expectRun(await stream.text, (await stream.steps)[0]?.reasoningText);
      });

      it("about a picture", async () => {
        const content = [
          { type: "text" as const, text: "What is this?" },
          { type: "file" as const, mediaType: "image/png", data: pictureData },
        ];
        const { prompt: _, ...about } = ask();
        const { text } = await generateText({ ...about, messages: [{ role: "user", content }] });
        expect(text).to.equal(answer);
        expect(sent()).to.include(picture).and.include("What is this?");
      });

      it("for structured output", async () => {
        const schema = jsonSchema<{ holder: string }>({
          type: "object",
          properties: { holder: { type: "string" } },
          required: ["holder"],
          additionalProperties: false,
        });
        upstream.next(asJson('{"holder":"a worker"}'));
        const { output } = await generateText({ ...ask(), output: Output.object({ schema }) });
        expect(output).to.deep.equal({ holder: "a worker" });
        expect(sent()).to.include("holder");
      });

      it("and reports errors with their statuses", async () => {
        upstream.setDefault({ status: 429 });
        const error = await generateText(ask()).catch((thrown: unknown) => thrown);
        expect(error).to.include({ statusCode: 429 });
      });
    });
  }
});
