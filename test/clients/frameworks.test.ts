import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { HumanMessage } from "@langchain/core/messages";
import { tool as langchainTool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { embedMany, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { expect } from "chai";
import { z } from "zod";
import { describeTargets, notBy } from "../support/describe-targets.ts";
import { startDocumentServer } from "../support/document-server.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { valueAt } from "../support/http-client.ts";
import { linkedPicture, pictureOf } from "../support/media.ts";
import type { TestPlatform } from "../support/start-platform.ts";

const sentParts = [
  { type: "text", text: "What is this?" },
  { type: "image_url", image_url: { url: pictureOf(4, 4) } },
];
const call = { id: "call_1", name: "weather", arguments: '{"town":"Graz"}' };

const leftOut = {
  embeds: notBy("the wire format has no embeddings", "openai-responses", "anthropic-messages"),
};

describeTargets("frameworks that speak OpenAI's API", leftOut, function (target) {
  this.timeout(60_000);
  const small = target.model("small");
  const vectorModel = target.model("vectors");
  let upstream: FakeProvider;
  let test: TestPlatform;
  before(async () => {
    upstream = await startFakeProvider();
    test = await target.start({
      workers: false,
      env: { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "small", EDGE_EMBEDDING_MODEL: "vectors" },
    });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  describe("@langchain/openai", () => {
    const options = () => ({ apiKey: test.keys.member, configuration: { baseURL: `${test.url}/v1` }, maxRetries: 0 });
    const model = () => new ChatOpenAI({ ...options(), model: small, streamUsage: true });

    it("chats, with usage", async () => {
      const answer = await model().invoke("What does a lease protect?");
      expect(answer.text).to.equal("The lease protects a job.");
      expect(answer.usage_metadata).to.include({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
    });

    it("streams, with usage", async () => {
      let text = "";
      let tokens = 0;
      for await (const chunk of await model().stream("What does a lease protect?")) {
        text += chunk.text;
        const reported: { total_tokens?: number } = chunk.usage_metadata ?? {};
        tokens += reported.total_tokens ?? 0;
      }
      expect([text, tokens]).to.deep.equal(["The lease protects a job.", 18]);
    });

    it("calls tools and sends their results back", async () => {
      upstream.next({ toolCalls: [call] }, { pieces: ["It rains in Graz."] });
      const weather = langchainTool(({ town }) => `rain in ${town}`, {
        name: "weather",
        description: "The weather of a town",
        schema: z.object({ town: z.string() }),
      });
      const withTools = model().bindTools([weather]);
      const asked = await withTools.invoke("How is the weather in Graz?");
      const [toolCall] = asked.tool_calls ?? [];
      if (!toolCall) throw new Error("no tool was called");
      expect(toolCall).to.deep.include({ name: "weather", args: { town: "Graz" } });
      const result = await weather.invoke({ ...toolCall, type: "tool_call" });
      const reported = await withTools.invoke([
        { role: "user", content: "How is the weather in Graz?" },
        asked,
        result,
      ]);
      expect(reported.text).to.equal("It rains in Graz.");
      expect(upstream.requests.at(-1)?.body.messages?.at(-1)).to.deep.include({
        role: "tool",
        content: "rain in Graz",
      });
    });

    it("shows a picture, and streams about it", async () => {
      const url = pictureOf(4, 4);
      const message = new HumanMessage({
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url } },
        ],
      });
      expect((await model().invoke([message])).text).to.equal("The lease protects a job.");
      await Array.fromAsync(await model().stream([message]));
      const sent = upstream.requests.map(({ body }) => body.messages);
      expect(sent).to.deep.equal([[{ role: "user", content: message.content }], sent[0]]);
    });

    it("embeds", async () => {
      const embeddings = new OpenAIEmbeddings({ ...options(), model: vectorModel });
      const vectors = await embeddings.embedDocuments(["one", "three"]);
      expect(vectors).to.have.lengthOf(2);
      expect(vectors[0]).not.to.deep.equal(vectors[1]);
    });
  });

  describe("ai with @ai-sdk/openai-compatible", () => {
    const settings = () => ({
      name: "switchyard",
      baseURL: `${test.url}/v1`,
      apiKey: test.keys.member,
      includeUsage: true,
    });
    const provider = () => createOpenAICompatible(settings());
    const weather = tool({
      description: "The weather of a town",
      inputSchema: jsonSchema<{ town: string }>({ type: "object", properties: { town: { type: "string" } } }),
      execute: async ({ town }) => `rain in ${town}`,
    });
    const ask = () => ({ model: provider()(small), prompt: "What does a lease protect?", maxRetries: 0 });

    it("chats, with usage", async () => {
      const { text, usage, finishReason } = await generateText(ask());
      expect([text, finishReason]).to.deep.equal(["The lease protects a job.", "stop"]);
      expect([usage.inputTokens, usage.outputTokens]).to.deep.equal([11, 7]);
    });

    it("streams, with usage", async () => {
      const result = streamText(ask());
      expect((await Array.fromAsync(result.textStream)).join("")).to.equal("The lease protects a job.");
      expect((await result.usage).totalTokens).to.equal(18);
    });

    it("runs tools, and streams them", async () => {
      const turns = [{ toolCalls: [call] }, { pieces: ["It rains in Graz."] }];
      upstream.next(...turns);
      const run = { ...ask(), tools: { weather }, stopWhen: stepCountIs(3) };
      const { text, steps } = await generateText(run);
      expect(text).to.equal("It rains in Graz.");
      expect(steps[0]?.toolResults[0]).to.deep.include({ toolName: "weather", output: "rain in Graz" });
      upstream.next(...turns);
      expect((await Array.fromAsync(streamText(run).textStream)).join("")).to.equal("It rains in Graz.");
    });

    it("shows a picture, and streams about it", async () => {
      const run = {
        model: provider()(small),
        maxRetries: 0,
        messages: [
          {
            role: "user" as const,
            content: [
              { type: "text" as const, text: "What is this?" },
              { type: "file" as const, mediaType: "image/png", data: pictureOf(4, 4) },
            ],
          },
        ],
      };
      expect((await generateText(run)).text).to.equal("The lease protects a job.");
      await Array.fromAsync(streamText(run).textStream);
      const sent = upstream.requests.map(({ body }) => body.messages);
      expect(sent).to.deep.equal([[{ role: "user", content: sentParts }], sent[0]]);
    });

    describe("shows a picture by its https URL, and streams about it", () => {
      const ask = (model: ReturnType<ReturnType<typeof provider>>) => {
        const content = [{ type: "file" as const, mediaType: "image", data: new URL(linkedPicture) }];
        return { model, maxRetries: 0, messages: [{ role: "user" as const, content }] };
      };
      const sentBy = async (run: Parameters<typeof generateText>[0]) => {
        expect((await generateText(run)).text).to.equal("The lease protects a job.");
        await Array.fromAsync(streamText(run).textStream);
        const urls = upstream.requests.map(({ body }) => valueAt(body, "messages[0].content[0].image_url.url"));
        expect(urls).to.have.lengthOf(2);
        return [...new Set(urls)];
      };

      it("which it sends on where its settings say that models read them", async () => {
        const supportedUrls = () => ({ "image/*": [/^https:/] });
        const reading = createOpenAICompatible({ ...settings(), supportedUrls });
        expect(await sentBy(ask(reading(small)))).to.deep.equal([linkedPicture]);
      });

      it("which it reads itself otherwise", async () => {
        const documents = await startDocumentServer();
        try {
          const [type = "", bytes = ""] = pictureOf(4, 4).replace("data:", "").split(";base64,");
          documents.put("/quay.png", { type, body: Buffer.from(bytes, "base64") });
          // Its own way to read refuses loopback.
          const read = async ({ url }: { url: URL }) => {
            const response = await fetch(`${documents.origin}${url.pathname}`);
            return { data: await response.bytes(), mediaType: type };
          };
          const download = (wanted: readonly { url: URL }[]) => Promise.all(wanted.map(read));
          const run = { ...ask(provider()(small)), experimental_download: download };
          expect(await sentBy(run)).to.deep.equal([pictureOf(4, 4)]);
          expect(documents.hits("/quay.png")).to.equal(2);
        } finally {
          documents.close();
        }
      });
    });

    it("embeds", async () => {
      const { embeddings, usage } = await embedMany({
        model: provider().embeddingModel(vectorModel),
        values: ["one", "three"],
      });
      expect(embeddings).to.have.lengthOf(2);
      expect(usage.tokens).to.be.above(0);
    });

    it("reports an error with its status", async () => {
      const wrong = { ...ask(), model: provider()("no-such") };
      const error = await generateText(wrong).catch((thrown: unknown) => thrown);
      expect(error).to.include({ statusCode: 404 });
    });
  });
});
