import { expect } from "chai";
import OpenAI from "openai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = { role: "user" as const, content: "What does a lease protect?" };
const tools = [{ type: "function" as const, function: { name: "weather", parameters: { type: "object" } } }];
const call = { id: "call_1", name: "weather", arguments: '{"town":"Graz"}' };
const prices = { contextWindow: 32_000, inputUsdPerMTok: 2, outputUsdPerMTok: 3 };

describe("a second Switchyard as the custom provider of the first", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let second: TestPlatform;
  let first: TestPlatform;
  let openai: OpenAI;
  before(async () => {
    upstream = await startFakeProvider();
    const edge = { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "small", EDGE_EMBEDDING_MODEL: "vectors" };
    second = await startPlatform({ workers: false, env: edge });
    first = await startPlatform({ workers: false, env: { FETCH_ALLOW_ORIGINS: second.url } });
    const admin = makeClient({ url: first.url, key: first.keys.admin });
    const models = ["small", "vectors"].map((id) => ({ id, type: id === "vectors" ? "embedding" : "chat", ...prices }));
    const put = async (name: string, given: object) => {
      const body = { key: second.keys.member, ...given };
      const set = await admin.request("PUT", `/ai/providers/custom/${name}`, { body });
      expect(set.status, set.text).to.equal(200);
    };
    await put("second", { baseUrl: `${second.url}/v1`, wire: "openai-chat", models });
    await put("messages", { baseUrl: second.url, wire: "anthropic-messages", models: models.slice(0, 1) });
    openai = new OpenAI({ baseURL: `${first.url}/v1`, apiKey: first.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await first.close();
    await second.close();
    await upstream.close();
  });

  for (const [name, wire] of [
    ["second", "openai-chat"],
    ["messages", "anthropic-messages"],
  ]) {
    it(`chats, streams and calls tools through two hops by ${wire}`, async () => {
      const model = `${name}/small`;
      const answered = await openai.chat.completions.create({ model, messages: [question] });
      expect(answered.choices[0]?.message.content).to.equal("The lease protects a job.");
      expect(answered.usage).to.deep.include({ prompt_tokens: 11, completion_tokens: 7 });

      const stream = await openai.chat.completions.create({ model, messages: [question], stream: true });
      const chunks = await Array.fromAsync(stream);
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).to.equal(
        "The lease protects a job.",
      );

      upstream.next({ toolCalls: [call] }, { pieces: ["It rains in Graz."] });
      const called = await openai.chat.completions.create({ model, messages: [question], tools });
      const message = called.choices[0]?.message;
      if (!message) throw new Error("there is no message");
      expect(message.tool_calls?.[0]).to.deep.include({ function: { name: call.name, arguments: call.arguments } });
      const result = { role: "tool" as const, tool_call_id: message.tool_calls?.[0]?.id ?? "", content: "rain" };
      const ended = await openai.chat.completions.create({ model, messages: [question, message, result], tools });
      expect(ended.choices[0]?.message.content).to.equal("It rains in Graz.");
      expect(upstream.requests.at(-1)?.body.model).to.equal("small");
    });
  }

  it("embeds through two hops", async () => {
    const { data } = await openai.embeddings.create({ model: "second/vectors", input: ["one", "two"] });
    expect(data).to.have.length(2);
    expect(upstream.requests.at(-1)).to.deep.include({ path: "/v1/embeddings" });
  });

  it("refuses the first one's key as the customer's own", async () => {
    const admin = makeClient({ url: first.url, key: first.keys.admin });
    const models = [{ id: "small", type: "chat", ...prices }];
    const body = { baseUrl: `${second.url}/v1`, key: `sk_${"0".repeat(32)}`.slice(0, 30), wire: "openai-chat", models };
    await admin.request("PUT", "/ai/providers/custom/wrong", { body });
    const error = await openai.chat.completions.create({ model: "wrong/small", messages: [question] }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(OpenAI.APIError).and.include({ status: 400, code: "provider_key_refused" });
  });
});
