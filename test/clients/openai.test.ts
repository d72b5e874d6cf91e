import { expect } from "chai";
import OpenAI from "openai";
import { describeTargets, notBy, untilServed } from "../support/describe-targets.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { linkedPicture, pictureOf } from "../support/media.ts";
import type { TestPlatform } from "../support/start-platform.ts";

const question = { role: "user" as const, content: "What does a lease protect?" };
const weather = {
  type: "function" as const,
  function: {
    name: "weather",
    description: "The weather of a town",
    parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
  },
};
const call = { id: "call_1", name: "weather", arguments: '{"town":"Graz"}' };

const noEmbeddings = notBy("the wire format has no embeddings", "openai-responses", "anthropic-messages");
const leftOut = {
  "passes on a seed": notBy("the wire format has no seed", "openai-responses", "anthropic-messages"),
  "passes on a format without a schema": notBy("Anthropic's formats have a schema", "anthropic-messages"),
  "asks for the detail of a picture": notBy("Anthropic's pictures have no detail", "anthropic-messages"),
  "embeds, float": noEmbeddings,
  "embeds, base64": noEmbeddings,
  "embeds, in its default encoding": noEmbeddings,
  "finds a model by its alias": notBy("the models of a custom provider are called by their ids"),
};

describeTargets("the official openai client", leftOut, (target) => {
  const small = target.model("small");
  let upstream: FakeProvider;
  let test: TestPlatform;
  let openai: OpenAI;
  before(async () => {
    upstream = await startFakeProvider();
    test = await target.start({
      workers: false,
      env: { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "small", EDGE_EMBEDDING_MODEL: "vectors" },
    });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const failureOf = async (calling: Promise<unknown>) => {
    const error = await calling.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof OpenAI.APIError)) throw new Error("the client raised no error of its own");
    return error;
  };

  it("chats", async () => {
    const completion = await openai.chat.completions.create({ model: small, messages: [question] });
    expect(completion).to.include({ object: "chat.completion", model: small });
    expect(completion.id).to.match(/^chatcmpl-/);
    expect(completion.created).to.be.closeTo(Date.now() / 1_000, 60);
    expect(completion.choices[0]).to.deep.include({ index: 0, finish_reason: "stop", logprobs: null });
    expect(completion.choices[0]?.message).to.deep.include({
      role: "assistant",
      content: "The lease protects a job.",
      refusal: null,
    });
    expect(completion.usage).to.deep.include({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
  });

  it("passes on every parameter, text parts and a developer's message", async () => {
    await openai.chat.completions.create({
      model: small,
      messages: [
        { role: "developer", content: "Be short." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is" },
            { type: "text", text: "a lease?" },
          ],
        },
      ],
      temperature: 0.5,
      top_p: 0.9,
      stop: "END",
      max_completion_tokens: 50,
    });
    expect(upstream.requests.at(-1)?.body).to.deep.include({
      messages: [
        { role: "system", content: "Be short." },
        { role: "user", content: "What is\na lease?" },
      ],
      temperature: 0.5,
      top_p: 0.9,
      stop: ["END"],
      max_tokens: 50,
    });
  });

  it("passes on a seed", async () => {
    await openai.chat.completions.create({ model: small, messages: [question], seed: 7 });
    expect(upstream.requests.at(-1)?.body.seed).to.equal(7);
  });

  it("passes on a format without a schema", async () => {
    const format = { type: "json_object" as const };
    upstream.next({ pieces: ["{}"] });
    await openai.chat.completions.create({ model: small, messages: [question], response_format: format });
    expect(upstream.requests.at(-1)?.body.response_format).to.deep.equal(format);
  });

  it("streams, with the usage last when it is requested", async () => {
    const stream = await openai.chat.completions.create({
      model: small,
      messages: [question],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    expect(new Set(chunks.map(({ id }) => id)).size).to.equal(1);
    expect(chunks[0]?.choices[0]?.delta).to.deep.equal({ role: "assistant", content: "" });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).to.equal("The lease protects a job.");
    const finished = chunks.filter(({ choices }) => choices[0]?.finish_reason);
    expect(finished.map(({ choices }) => choices[0]?.finish_reason)).to.deep.equal(["stop"]);
    const last = chunks.at(-1);
    expect(last?.choices).to.deep.equal([]);
    expect(last?.usage).to.deep.equal({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
    for (const chunk of chunks.slice(0, -1)) expect(chunk.usage).to.equal(null);
  });

  it("streams without usage when it is not requested", async () => {
    const stream = await openai.chat.completions.create({ model: small, messages: [question], stream: true });
    for await (const chunk of stream) {
      expect(chunk.choices).to.have.lengthOf(1);
      expect(chunk).not.to.have.property("usage");
    }
  });

  it("calls tools and sends their results back", async () => {
    upstream.next({ toolCalls: [call] }, { pieces: ["It rains in Graz."] });
    const asked = await openai.chat.completions.create({ model: small, messages: [question], tools: [weather] });
    expect(asked.choices[0]?.finish_reason).to.equal("tool_calls");
    const message = asked.choices[0]?.message;
    if (!message) throw new Error("no message");
    expect(message.content).to.equal(null);
    expect(message.tool_calls).to.deep.equal([
      { id: "call_1", type: "function", function: { name: "weather", arguments: '{"town":"Graz"}' } },
    ]);
    const reported = await openai.chat.completions.create({
      model: small,
      messages: [question, message, { role: "tool", tool_call_id: "call_1", content: "rain" }],
      tools: [weather],
      tool_choice: "auto",
    });
    expect(reported.choices[0]?.message.content).to.equal("It rains in Graz.");
    expect(upstream.requests.at(-1)?.body.messages?.slice(1)).to.deep.equal([
      { role: "assistant", content: null, tool_calls: message.tool_calls },
      { role: "tool", content: "rain", tool_call_id: "call_1" },
    ]);
  });

  it("shows pictures", async () => {
    const user: OpenAI.ChatCompletionUserMessageParam = {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image_url", image_url: { url: pictureOf(4, 4) } },
        { type: "image_url", image_url: { url: linkedPicture } },
      ],
    };
    await openai.chat.completions.create({ model: small, messages: [user] });
    const stream = openai.chat.completions.stream({ model: small, messages: [user] });
    expect((await stream.finalMessage()).content).to.equal("The lease protects a job.");
    expect(upstream.requests.map(({ body }) => body.messages)).to.deep.equal([[user], [user]]);
  });

  it("asks for the detail of a picture", async () => {
    const part = { type: "image_url" as const, image_url: { url: linkedPicture, detail: "low" as const } };
    await openai.chat.completions.create({ model: small, messages: [{ role: "user", content: [part] }] });
    expect(upstream.requests.at(-1)?.body.messages).to.deep.equal([{ role: "user", content: [part] }]);
  });

  it("puts streamed tool calls together, through its own helper", async () => {
    upstream.next({ toolCalls: [call, { ...call, id: "call_2", arguments: "{}" }] });
    const stream = openai.chat.completions.stream({ model: small, messages: [question], tools: [weather] });
    const message = await stream.finalMessage();
    expect(message.tool_calls?.map((one) => [one.id, one.type === "function" && one.function.arguments])).to.deep.equal(
      [
        ["call_1", '{"town":"Graz"}'],
        ["call_2", "{}"],
      ],
    );
  });

  for (const encoding of ["float", "base64", undefined] as const) {
    it(`embeds, ${encoding ?? "in its default encoding"}`, async () => {
      const list = await openai.embeddings.create({
        model: target.model("vectors"),
        input: ["one", "three"],
        ...(encoding === undefined ? {} : { encoding_format: encoding }),
      });
      expect(list.object).to.equal("list");
      expect(list.data.map(({ index, object }) => [index, object])).to.deep.equal([
        [0, "embedding"],
        [1, "embedding"],
      ]);
      if (encoding === "base64") for (const { embedding } of list.data) expect(embedding).to.be.a("string");
      else expect(list.data[1]?.embedding[0]).to.be.a("number");
      expect(list.usage.total_tokens).to.be.above(0);
    });
  }

  it("lists the models, and finds one", async () => {
    const models = await Array.fromAsync(openai.models.list());
    expect(models.map(({ id }) => id)).to.include(small);
    for (const model of models) expect(model.object).to.equal("model");
    expect(await openai.models.retrieve(small)).to.include({ id: small });
    expect(await failureOf(openai.models.retrieve("no-such"))).to.be.instanceOf(OpenAI.NotFoundError);
  });

  it("finds a model by its alias", async () => {
    expect(await openai.models.retrieve("meta-llm")).to.include({ id: small, owned_by: "edge" });
  });

  it("raises its own classes of errors", async () => {
    const chat = (body: object, client = openai) =>
      client.chat.completions.create({ model: small, messages: [question], ...body });
    const nobody = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: `sk_${"0".repeat(32)}`, maxRetries: 0 });
    expect(await failureOf(chat({}, nobody))).to.be.instanceOf(OpenAI.AuthenticationError);
    const tooHot = await failureOf(chat({ temperature: 3 }));
    expect(tooHot).to.be.instanceOf(OpenAI.BadRequestError);
    expect([tooHot.param, tooHot.type]).to.deep.equal(["temperature", "invalid_request_error"]);
    const several = await failureOf(chat({ n: 2 }));
    expect([several.status, several.param]).to.deep.equal([400, "n"]);
    const picture = { role: "user", content: [{ type: "image_url", image_url: { url: "http://a.b/c.png" } }] };
    const unread = await failureOf(chat({ messages: [picture] }));
    expect([unread.status, unread.param]).to.deep.equal([400, "messages[0].content[0].image_url.url"]);
    expect(await failureOf(chat({ model: "no-such" }))).to.include({ code: "model_not_found", param: "model" });
    upstream.setDefault({ status: 500 });
    expect(await failureOf(chat({}))).to.be.instanceOf(OpenAI.InternalServerError);
    upstream.setDefault({});
    await untilServed(() => chat({}));
  });

  it("reads from the limits when to retry", async () => {
    const limited = await target.start({ workers: false, env: { RATE_LIMIT_RPM: "1" } });
    try {
      const client = new OpenAI({ baseURL: `${limited.url}/v1`, apiKey: limited.keys.member, maxRetries: 0 });
      const chat = () =>
        client.chat.completions.create({ model: target.model("switchyard-offline"), messages: [question] });
      expect((await chat()).choices).to.have.lengthOf(1);
      const error = await failureOf(chat());
      expect(error).to.be.instanceOf(OpenAI.RateLimitError);
      expect(Number(error.headers?.get("retry-after"))).to.be.above(0);
    } finally {
      await limited.close();
    }
  });

  it("does not repeat a request that a provider rejects, and learns the reason", async () => {
    const before = upstream.requests.length;
    upstream.setDefault({ status: 400, errorCode: "context_length_exceeded", errorMessage: "Too long by 12 tokens." });
    const error = await failureOf(openai.chat.completions.create({ model: small, messages: [question] }));
    upstream.setDefault({});
    expect(error).to.be.instanceOf(OpenAI.BadRequestError);
    expect(error).to.include({ code: "provider_rejected" });
    expect(error.message).to.contain("Too long by 12 tokens.");
    expect(upstream.requests.length - before).to.equal(1);
  });

  it("reports a stream that breaks in the middle", async () => {
    upstream.next({ fault: { type: "cut", afterPieces: 1 } });
    const stream = await openai.chat.completions.create({ model: small, messages: [question], stream: true });
    const heard: string[] = [];
    const error = await failureOf(
      (async () => {
        for await (const chunk of stream) heard.push(chunk.choices[0]?.delta.content ?? "");
      })(),
    );
    expect(heard.join("")).to.equal("The lease ");
    expect(error).to.include({ code: "provider_failed" });
  });
});
