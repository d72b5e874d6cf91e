import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { expect } from "chai";
import { z } from "zod";
import { describeTargets } from "../support/describe-targets.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = { role: "user" as const, content: "What does a lease protect?" };

describeTargets("message threads of Anthropic's official client", {}, (target) => {
  const models = [target.model("small"), target.model("gpt-5.6-luna")];
  const claude = target.model("claude-haiku-5-5");
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: Anthropic;
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
        ANTHROPIC_BASE_URL: upstream.origin,
      },
    });
    client = new Anthropic({ baseURL: test.url, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  for (const model of models) {
    it(`are refused for ${model} as Anthropic documents it, and go on with the whole history`, async () => {
      const about = { model, max_tokens: 2_000 };
      const refused = await client.beta.messages
        .thread(about)
        .send(question)
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      if (!(refused instanceof Anthropic.BadRequestError)) throw new Error(`it is not refused: ${refused}`);
      expect(refused.error).to.have.nested.property("error.details.error_code", "thread_unsupported_request");
      expect(upstream.requests).to.deep.equal([]);
      const thread = client.beta.messages.thread({ ...about, unsupportedRequestBehavior: "continue_unthreaded" });
      await thread.send(question);
      const { content } = await thread.send({ role: "user", content: "From what?" });
      expect(content).to.deep.include({ type: "text", text: "The lease protects a job." });
      const said = JSON.stringify(upstream.requests.at(-1)?.body);
      for (const part of ["What does a lease protect?", "The lease protects a job.", "From what?"])
        expect(said).to.include(part);
    });

    it(`do not hinder the default tool runner with ${model}`, async () => {
      upstream.next({ pieces: [], toolCalls: [{ id: "call_1", name: "weather", arguments: '{"town":"Graz"}' }] });
      const weather = betaZodTool({
        name: "weather",
        description: "The weather of a town",
        inputSchema: z.object({ town: z.string() }),
        run: ({ town }) => `Rain in ${town}.`,
      });
      const message = await client.beta.messages.toolRunner({
        model,
        max_tokens: 2_000,
        messages: [question],
        tools: [weather],
      });
      expect(message.content).to.deep.include({ type: "text", text: "The lease protects a job." });
      const said = JSON.stringify(upstream.requests.at(-1)?.body);
      for (const part of ["What does a lease protect?", "Rain in Graz."]) expect(said).to.include(part);
    });
  }

  if (target.wire === undefined || target.wire === "anthropic-messages")
    it("reach Claude, which holds the conversation", async () => {
      const thread = client.beta.messages.thread({ model: claude, max_tokens: 2_000 });
      const { id } = await thread.send(question);
      await thread.send({ role: "user", content: "From what?" });
      const [first, second] = upstream.requests.map(({ body }) => JSON.parse(JSON.stringify(body)));
      expect(first.thread).to.deep.equal({ type: "create" });
      expect(second.thread).to.deep.equal({ type: "continue", previous_message_id: id });
      expect(second.messages).to.deep.equal([{ role: "user", content: "From what?" }]);
      expect(upstream.requests[1]?.headers["anthropic-beta"]).to.include("message-threads");
    });
});

describe("the default tool runner of Anthropic's official client with the offline model", () => {
  it("gets an answer", async () => {
    const test = await startPlatform({ workers: false });
    try {
      const client = new Anthropic({ baseURL: test.url, apiKey: test.keys.member, maxRetries: 0 });
      const about = { model: "meta-llm", max_tokens: 200, messages: [question], tools: [] };
      expect((await client.beta.messages.toolRunner(about)).content[0]).to.include({ type: "text" });
    } finally {
      await test.close();
    }
  });
});
