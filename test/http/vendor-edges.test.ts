import Anthropic from "@anthropic-ai/sdk";
import { expect } from "chai";
import OpenAI from "openai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const messages = [{ role: "user" as const, content: "What does a lease protect?" }];
const model = "small";

describe("the edges of OpenAI's and Anthropic's APIs", function () {
  this.timeout(30_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let openai: OpenAI;
  let anthropic: Anthropic;
  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: model,
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: upstream.origin,
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
    anthropic = new Anthropic({ baseURL: test.url, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });
  const sent = () => JSON.parse(JSON.stringify(upstream.requests.at(-1)?.body));
  const failureOf = (calling: Promise<unknown>) =>
    calling.then(
      () => undefined,
      (error: unknown) => error,
    );

  for (const [path, body] of [
    ["/v1/chat/completions", { messages }],
    ["/v1/chat/completions", { messages, stream: true }],
    ["/v1/responses", { input: "Hello." }],
    ["/v1/responses/input_tokens", { input: "Hello." }],
    ["/v1/responses/compact", { input: "Hello." }],
    ["/v1/embeddings", { input: "Hello." }],
  ] as const)
    it(`are met by an unknown model as by OpenAI: ${path} ${JSON.stringify(body)}`, async () => {
      const refused = await client.post(path, { ...body, model: "gpt-0" });
      const about = [refused.status, refused.at("error.code"), refused.at("error.type"), refused.at("error.param")];
      expect(about).to.deep.equal([404, "model_not_found", "invalid_request_error", "model"]);
    });

  it("are met by an unknown model with the clients' own errors", async () => {
    const own = await failureOf(openai.chat.completions.create({ model: "gpt-0", messages }));
    expect(own).to.be.instanceOf(OpenAI.NotFoundError);
    const elsewhere = await client.post("/ai/chat", { model: "gpt-0", messages });
    expect([elsewhere.status, elsewhere.at("error.code")]).to.deep.equal([400, "unknown_model"]);
  });

  it("do not offer Anthropic's Files API, which OpenAI's paths would answer, nor other paths of Anthropic's", async () => {
    const file = await openai.files.create({ purpose: "user_data", file: new File(["Hello."], "a.txt") });
    for (const calling of [
      anthropic.beta.files.list(),
      anthropic.beta.files.retrieveMetadata(file.id),
      anthropic.beta.files.delete(file.id),
      anthropic.beta.files.upload({ file: new File(["Hello."], "a.txt") }),
      anthropic.beta.skills.list(),
      anthropic.get("/v1/messages/nothing"),
    ]) {
      const error = await failureOf(calling);
      if (!(error instanceof Anthropic.NotFoundError)) throw new Error(`it is no 404: ${error}`);
      expect(error.type).to.equal("not_found_error");
      expect(error.requestID).to.match(/^req_/);
    }
    expect((await openai.files.retrieve(file.id)).id, "it is still there").to.equal(file.id);
    const other = await client.get("/v1/fine_tuning/jobs");
    expect([other.status, other.at("error.code")]).to.deep.equal([404, "not_found"]);
  });

  it("take an empty user as none", async () => {
    await openai.chat.completions.create({ model, messages, user: "", safety_identifier: "", prompt_cache_key: "" });
    expect(sent()).not.to.have.any.keys("user", "safety_identifier", "prompt_cache_key");
    expect((await openai.responses.create({ model, input: "Hello.", user: "" })).status).to.equal("completed");
    await anthropic.messages.create({ model, max_tokens: 50, messages, metadata: { user_id: "" } });
    expect(sent()).not.to.have.property("user");
  });

  it("embed tokens as the texts that they are of", async () => {
    const about = { model: "text-embedding-3-small", encoding_format: "float" as const };
    await openai.embeddings.create({ ...about, input: [3923, 1587, 264, 26120, 6144, 30] });
    const [decoded] = [sent().input].flat();
    expect(decoded).to.match(/^What does a .* protect\?$/);
    const two = await openai.embeddings.create({ ...about, input: [[9906], [14957]] });
    expect([sent().input, two.data.length]).to.deep.equal([["Hello", "world"], 2]);
    for (const input of [[100_270], [[9906], []], [-1]]) {
      const refused = await client.post("/v1/embeddings", { ...about, input });
      expect([refused.status, refused.at("error.code")]).to.deep.equal([400, "invalid_request"]);
    }
  });

  const words = {
    presence_penalty: 0.5,
    frequency_penalty: -0.5,
    logit_bias: { "15339": -100 },
    prediction: { type: "content" as const, content: "The lease protects a job." },
  };
  const likely = { logprobs: true, top_logprobs: 2 };
  for (const name of [model, "gpt-4.1-mini"])
    it(`pass on what shapes the words to ${name}`, async () => {
      const { response } = await openai.chat.completions.create({ model: name, messages, ...words }).withResponse();
      expect(sent()).to.deep.include(words);
      expect(response.headers.get("x-svc-ignored")).to.equal(null);
    });

  for (const name of [model, "gpt-4.1-mini"])
    it(`give back how likely the tokens of ${name} were, as JSON, as a stream and from the cache`, async () => {
      const asked = { model: name, messages, logprobs: true, top_logprobs: 2 };
      const { data, response } = await openai.chat.completions.create(asked).withResponse();
      expect([sent().logprobs, sent().top_logprobs]).to.deep.equal([true, 2]);
      expect(response.headers.get("x-svc-ignored")).to.equal(null);
      const [choice] = data.choices;
      const content = choice?.logprobs?.content ?? [];
      expect(content.map(({ token }) => token).join("")).to.equal(choice?.message.content);
      expect(content[0]).to.deep.include({ logprob: -0.25 });
      expect(content[0]?.top_logprobs.map(({ token }) => token)).to.deep.equal(["t0", "t1"]);
      const options = { headers: { "x-svc-options": "cache=true" } };
      const requests = upstream.requests.length;
      for (let round = 0; round < 2; round++) {
        const stream = await openai.chat.completions.create({ ...asked, stream: true }, options);
        const choices = (await Array.fromAsync(stream)).flatMap((chunk) => chunk.choices);
        expect(choices.flatMap(({ logprobs }) => logprobs?.content ?? [])).to.deep.equal(content);
        expect(choices.map(({ delta }) => delta.content ?? "").join("")).to.equal(choice?.message.content);
      }
      expect((await openai.chat.completions.create(asked, options)).choices[0]?.logprobs?.content).to.deep.equal(
        content,
      );
      expect(upstream.requests.length - requests, "but for the first stream from the cache").to.equal(1);
      const own = await client.post("/ai/chat", asked);
      expect(own.at("choices[0].logprobs.content")).to.deep.equal(content);
      const opened = await client.events("POST", "/ai/chat", { body: { ...asked, stream: true } });
      const events = (await Array.fromAsync(opened.events)) as { data: { logprobs?: { content: unknown[] } } }[];
      expect(events.flatMap(({ data }) => data.logprobs?.content ?? [])).to.deep.equal(content);
    });

  it("give no probabilities that were not asked for", async () => {
    for (const asked of [{}, { logprobs: false }, { logprobs: null, top_logprobs: null }]) {
      const { data, response } = await openai.chat.completions
        .create({ model: "claude-haiku-5-5", messages, ...asked })
        .withResponse();
      expect([data.choices[0]?.logprobs, response.headers.get("x-svc-ignored")]).to.deep.equal([null, null]);
    }
    const refused = await client.post("/v1/chat/completions", { model, messages, top_logprobs: 2 });
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "top_logprobs"]);
  });

  it("name sampling settings that are dropped because another setting needs OpenAI's Responses API", async () => {
    const asked = { model: "gpt-4.1-mini", messages, ...words, ...likely, seed: 7, metadata: { a: "b" } };
    const { data, response } = await openai.chat.completions.create(asked).withResponse();
    expect(response.headers.get("x-svc-ignored")?.split(", ")).to.have.members([
      ...Object.keys({ ...words, ...likely }),
      "seed",
    ]);
    expect(data.choices[0]?.logprobs).to.equal(null);
    expect(sent().metadata).to.deep.equal({ a: "b" });
  });

  it("name sampling settings that a model does not take", async () => {
    for (const name of ["gpt-5.6-luna", "claude-haiku-5-5"]) {
      const { response } = await openai.chat.completions
        .create({ model: name, messages, ...words, ...likely })
        .withResponse();
      expect(sent()).not.to.have.any.keys(...Object.keys({ ...words, ...likely }));
      expect(response.headers.get("x-svc-ignored")?.split(", ")).to.have.members(Object.keys({ ...words, ...likely }));
    }
  });

  it("mark the first call with tools for Claude's cache, and no single question", async () => {
    const weather = { type: "function" as const, function: { name: "weather", parameters: { type: "object" } } };
    const about = { model: "claude-haiku-5-5", messages };
    await openai.chat.completions.create({ ...about, tools: [weather] });
    expect(JSON.stringify(sent())).to.include("cache_control");
    await openai.chat.completions.create(about);
    expect(JSON.stringify(sent())).not.to.include("cache_control");
  });
});
