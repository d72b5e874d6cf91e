import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiEvent, makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = { messages: [{ role: "user", content: "Hello, how are you?" }], model: "auto" };
const debug = { headers: { "x-svc-debug": "true" } };
const MAX_ATTEMPTS = 4;

const readAll = async (events: AsyncIterable<ApiEvent>) => {
  const all: unknown[] = [];
  for await (const { data } of events) all.push(data);
  return all;
};

describe("fallbacks of a model that fails", () => {
  let primary: FakeProvider; // Anthropic: its chat model is the first among the cheapest
  let other: FakeProvider; // OpenAI
  let test: TestPlatform;
  let client: ApiClient;
  beforeEach(async function () {
    this.timeout(60_000);
    primary = await startFakeProvider();
    other = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-openai-0123456789",
        OPENAI_BASE_URL: other.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: primary.origin,
        PROVIDER_MAX_ATTEMPTS: String(MAX_ATTEMPTS),
        PROVIDER_FIRST_BYTE_TIMEOUT_MS: "300",
        PROVIDER_ANSWER_TIMEOUT_MS: "300",
        PROVIDER_IDLE_TIMEOUT_MS: "200",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(async () => {
    await test.close();
    await primary.close();
    await other.close();
  });

  const chat = (extra: object = {}) => client.post("/ai/chat", { ...question, ...extra }, debug);
  const stream = async (extra: object = {}) => {
    const body = { ...question, ...extra, stream: true };
    return readAll((await client.events("POST", "/ai/chat", { body, ...debug })).events);
  };
  const modelsUsed = async () => {
    const rows = (await client.get("/usage?groupBy=model")).at("data");
    return Array.isArray(rows) ? Object.fromEntries(rows.map((row) => [row.model, row])) : {};
  };

  it("serves every `auto` request although the first choice always fails, and soon stops calling it", async () => {
    primary.setDefault({ status: 500 });
    const requests = 60;
    const startedAt = performance.now();
    for (let n = 0; n < requests / 2; n++) {
      const response = await chat();
      expect(response.status, response.text).to.equal(200);
      expect(response.at("model")).to.equal("gpt-6-luna");
      expect(valueAt((await stream()).at(-1), "model")).to.equal("gpt-6-luna");
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    // Five failures open the breaker; then one probe passes after 1 s, 2 s, 4 s, which fails at both of its attempts at most.
    expect(primary.requests.length).to.be.within(5, 6 + 2 * Math.ceil(seconds));
    expect(other.requests).to.have.length(requests);
    const usage = await pollUntil(async () => {
      const rows = await modelsUsed();
      return rows["gpt-6-luna"]?.requests === requests ? rows : undefined;
    });
    expect(usage["gpt-6-luna"]).to.include({ errors: 0, inputTokens: other.served().inputTokens });
    expect(usage["claude-haiku-5-5"].errors, "a record of each model that failed").to.be.at.least(3);
    expect(usage["claude-haiku-5-5"]).to.include({ inputTokens: 0, outputTokens: 0, costUsd: 0 });
  });

  it("reports the skipped models and why, and returns to the first choice when it recovers", async () => {
    primary.setDefault({ status: 529, errorCode: "overloaded_error" });
    const failed = await chat();
    expect(failed.at("_preprocessing.routing.skipped")).to.deep.equal([
      {
        model: "claude-haiku-5-5",
        provider: "anthropic",
        reason: "provider_failed: The provider failed with status 529.",
      },
    ]);
    expect(failed.at("_preprocessing.routing.model")).to.equal("gpt-6-luna");
    expect(primary.requests, "one that has a fallback is tried twice").to.have.length(2);
    await chat();
    await chat();
    const skipped = (await chat()).string("_preprocessing.routing.skipped[0].reason");
    expect(skipped).to.contain("is not called for a moment");
    primary.setDefault({});
    await pollUntil(async () => (await chat()).at("model") === "claude-haiku-5-5");
    expect((await chat()).at("_preprocessing.routing")).not.to.have.property("skipped");
  });

  it("makes the configured number of attempts when all models fail, and reports the last failure", async () => {
    primary.setDefault({ status: 500 });
    other.setDefault({ status: 503 });
    const response = await chat();
    expect([response.status, response.at("error.code")]).to.deep.equal([502, "provider_failed"]);
    expect(response.at("error.details.status")).to.be.oneOf([500, 503]);
    expect(primary.requests.length + other.requests.length).to.equal(MAX_ATTEMPTS);
  });

  it("tries the next model after silence, rate limits and refused keys, but not after a rejected request", async () => {
    primary.next({ firstByteMs: 20_000 });
    expect((await chat()).at("model")).to.equal("gpt-6-luna");
    primary.next({ status: 429, headers: { "retry-after": "60" } });
    expect((await chat()).at("_preprocessing.routing.skipped[0].reason")).to.contain("provider_rate_limited");
    primary.next({ status: 401, errorMessage: "invalid x-api-key sk-ant-platform-0123456789" });
    const keyless = await chat();
    expect(keyless.at("model")).to.equal("gpt-6-luna");
    expect(keyless.text).not.to.contain("sk-ant-platform-0123456789");
    const before = other.requests.length;
    primary.next({ status: 400, errorMessage: "prompt is too long" });
    expect((await chat()).at("error.details.message")).to.equal("prompt is too long");
    expect(other.requests).to.have.length(before);
  });

  it("tries the next model only before the first token of a stream", async () => {
    primary.setDefault({ fault: { type: "cut", afterPieces: 0 } });
    expect(valueAt((await stream()).at(-1), "model")).to.equal("gpt-6-luna");
    primary.setDefault({ fault: { type: "cut", afterPieces: 1 } });
    const broken = await stream();
    expect(broken[0]).to.deep.equal({ delta: { content: "The lease " }, done: false });
    expect(valueAt(broken.at(-1), "error.code")).to.equal("provider_failed");
    expect(other.requests).to.have.length(1);
  });

  it("never replaces a model that was named", async () => {
    primary.setDefault({ status: 500 });
    const response = await chat({ model: "claude-haiku-5-5" });
    expect(response.status).to.equal(502);
    expect([primary.requests.length, other.requests.length]).to.deep.equal([3, 0]);
  });

  it("replaces a named model by the tenant's fallbacks, in their order, for that tenant only", async () => {
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const fallbacks = [{ model: "claude-haiku-5-5", models: ["gpt-6-luna", "meta-llm"] }];
    const body = { body: { fallbacks } };
    const member = await client.request("PUT", "/ai/fallbacks", body);
    expect([member.status, member.at("error.code")]).to.deep.equal([403, "insufficient_role"]);
    expect((await admin.request("PUT", "/ai/fallbacks", body)).body).to.deep.equal({ fallbacks });
    expect((await client.get("/ai/fallbacks")).body).to.deep.equal({ fallbacks });
    primary.setDefault({ status: 500 });
    const served = await chat({ model: "claude-haiku-5-5" });
    expect([served.at("model"), served.at("_preprocessing.routing.reason")]).to.deep.equal([
      "gpt-6-luna",
      "named; a fallback for claude-haiku-5-5",
    ]);
    const withTemperature = await chat({ model: "claude-haiku-5-5", temperature: 1 });
    expect(withTemperature.at("model")).to.equal("gpt-6-luna");
    other.setDefault({ status: 500 });
    expect((await chat({ model: "claude-haiku-5-5" })).at("model")).to.equal("switchyard-offline");
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.get("/ai/fallbacks")).body).to.deep.equal({ fallbacks: [] });
    other.setDefault({});
    expect((await stranger.post("/ai/chat", { ...question, model: "claude-haiku-5-5" })).status).to.equal(502);
  });

  it("names what a fallback does not take, besides what the model does not", async () => {
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const fallbacks = [{ model: "claude-haiku-5-5", models: ["meta-llm"] }];
    await admin.request("PUT", "/ai/fallbacks", { body: { fallbacks } });
    const body = { ...question, model: "claude-haiku-5-5", seed: 7, user: "ana" };
    const ignoredAt = async (path: string) => {
      const { headers } = await client.post(path, body);
      const streamed = await client.events("POST", path, { body: { ...body, stream: true } });
      await Array.fromAsync(streamed.events);
      expect(streamed.headers.get("x-svc-ignored"), path).to.equal(headers.get("x-svc-ignored"));
      return headers.get("x-svc-ignored");
    };
    expect(await ignoredAt("/ai/chat")).to.equal("seed");
    primary.setDefault({ status: 500 });
    for (const path of ["/ai/chat", "/v1/chat/completions"]) expect(await ignoredAt(path)).to.equal("seed, user");
    const asked = { model: body.model, input: "What does a lease protect?", store: false, user: "ana" };
    expect((await client.post("/v1/responses", asked)).headers.get("x-svc-ignored")).to.equal("user");
  });

  it("refuses invalid fallbacks", async () => {
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const errorOf = async (...fallbacks: { model: string; models: string[] }[]) => {
      const { status, at } = await admin.request("PUT", "/ai/fallbacks", { body: { fallbacks } });
      return [status, at("error.code"), at("error.param")];
    };
    const unknown = await errorOf({ model: "gpt-4.1", models: ["no-such"] });
    expect(unknown).to.deep.equal([400, "unknown_model", "fallbacks[0].models[0]"]);
    const embedding = await errorOf({ model: "text-embedding-3-small", models: ["gpt-4.1"] });
    expect(embedding).to.deep.equal([400, "unknown_model", "fallbacks[0].model"]);
    const itself = await errorOf({ model: "gpt-5.6", models: ["gpt-5.6-sol"] });
    expect(itself).to.deep.equal([400, "invalid_request", "fallbacks[0].models[0]"]);
    expect(await errorOf({ model: "gpt-4.1", models: [] })).to.deep.equal([
      400,
      "invalid_request",
      "fallbacks[0].models",
    ]);
  });

  it("aborts the fallback's call when the caller leaves", async () => {
    primary.setDefault({ status: 500 });
    other.setDefault({ firstByteMs: 250 });
    for (const isStreamed of [false, true]) {
      other.requests.length = 0;
      const controller = new AbortController();
      const call = fetch(`${test.url}/ai/chat`, {
        method: "POST",
        signal: controller.signal,
        headers: { authorization: `Bearer ${test.keys.member}`, "content-type": "application/json" },
        body: JSON.stringify({ ...question, stream: isStreamed }),
      }).catch(() => undefined);
      await pollUntil(() => other.requests.length > 0);
      controller.abort();
      await call;
      expect(await other.requests[0]?.ended).to.equal("broken");
      expect(other.requests).to.have.length(1);
    }
  });
});
