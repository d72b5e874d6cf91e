import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("POST /ai/embeddings", () => {
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  it("answers OpenAI's list, one vector for each input in order", async () => {
    const response = await client.post("/ai/embeddings", { input: ["a lease", "a job", "a lease"] });
    expect(response.status).to.equal(200);
    expect(response.body).to.deep.include({ object: "list", model: "switchyard-offline-embedding", costUsd: 0 });
    const vectors = [0, 1, 2].map((n) => response.at(`data[${n}].embedding`) as number[]); // the client checked the schema
    expect(vectors.map((vector) => vector.length)).to.deep.equal([512, 512, 512]);
    expect(vectors[0]).to.deep.equal(vectors[2]).and.not.to.deep.equal(vectors[1]);
    expect(vectors[0]?.reduce((sum, value) => sum + value * value, 0)).to.be.closeTo(1, 1e-4);
    expect([0, 1, 2].map((n) => response.at(`data[${n}].index`))).to.deep.equal([0, 1, 2]);
    expect(response.at("usage.prompt_tokens")).to.equal(response.at("usage.total_tokens"));
    expect((await client.get(`/ai/logs/${response.string("logId")}`)).at("kind")).to.equal("embedding");
  });

  it("gives the same vector as base64, and takes a single text", async () => {
    const numbers = await client.post("/ai/embeddings", { input: "a lease" });
    const base64 = await client.post("/ai/embeddings", { input: "a lease", encoding_format: "base64" });
    const bytes = Buffer.from(base64.string("data[0].embedding"), "base64");
    const vector = Array.from({ length: bytes.length / 4 }, (_, n) => bytes.readFloatLE(n * 4));
    expect(vector).to.deep.equal(numbers.at("data[0].embedding"));
  });

  it("gives fewer dimensions when asked for", async () => {
    const response = await client.post("/ai/embeddings", { input: "a lease", dimensions: 64 });
    expect(response.at("data[0].embedding")).to.have.length(64);
  });

  it("sends many numbers vector by vector, as it sends few", async () => {
    const input = Array.from({ length: 2_048 }, (_, n) => `job ${n}`);
    const many = await client.post("/ai/embeddings", { input, dimensions: 200 });
    const few = await client.post("/ai/embeddings", { input: input.slice(-1), dimensions: 200 });
    expect(many.at("data")).to.have.length(2_048);
    expect(many.at("data[2047]")).to.deep.equal({ ...(few.at("data[0]") as object), index: 2_047 });
    const rest = ({ body }: typeof many) => Object.keys(body as object).sort();
    expect(rest(many)).to.deep.equal(rest(few));
    const input64 = { input, dimensions: 200, encoding_format: "base64" };
    const packed = Buffer.from((await client.post("/ai/embeddings", input64)).string("data[2047].embedding"), "base64");
    expect(packed.readFloatLE(0)).to.equal(many.at("data[2047].embedding[0]"));
  }).timeout(30_000);

  it("sets memory aside for what few bytes ask for, before a model is asked", async () => {
    const body = JSON.stringify({ input: Array.from({ length: 2_048 }, (_, n) => `job ${n}`), dimensions: 2_048 });
    const headers = { authorization: `Bearer ${test.keys.member}`, "content-type": "application/json" };
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const response = await fetch(`${test.url}/ai/embeddings`, { method: "POST", headers, body });
        await response.body?.cancel();
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status === 200).length).to.be.within(1, 4);
    expect(new Set(statuses)).to.deep.equal(new Set([200, 429]));
  }).timeout(30_000);

  it("refuses bad input with 400 and the path of the field", async () => {
    const cases: [object, string][] = [
      [{}, "input"],
      [{ input: "" }, "input"],
      [{ input: [] }, "input"],
      [{ input: ["a", ""] }, "input[1]"],
      [{ input: Array.from({ length: 2_049 }, () => "a") }, "input"],
      [{ input: "a", encoding_format: "hex" }, "encoding_format"],
      [{ input: "a", dimensions: 0 }, "dimensions"],
      [{ input: "a", model: "switchyard-offline" }, "model"],
      [{ input: "a", model: "nope" }, "model"],
    ];
    for (const [body, param] of cases) {
      const response = await client.post("/ai/embeddings", body);
      expect([response.status, response.at("error.param")], JSON.stringify(body).slice(0, 100)).to.deep.equal([
        400,
        param,
      ]);
    }
  });
});

describe("POST /ai/embeddings with an OpenAI-compatible server", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    fake = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: { EDGE_BASE_URL: fake.url, EDGE_MODEL: "small", EDGE_EMBEDDING_MODEL: "embed-test" },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(() => fake.reset());
  after(async () => {
    await test.close();
    await fake.close();
  });

  it("asks for base64, and answers numbers and the server's usage", async () => {
    const response = await client.post("/ai/embeddings", { input: ["abc", "de fg"], dimensions: 4 });
    expect(fake.requests[0]?.body).to.deep.equal({
      model: "embed-test",
      input: ["abc", "de fg"],
      encoding_format: "base64",
      dimensions: 4,
    });
    expect(response.at("data[1].embedding")).to.deep.equal([5, 1, 0.5, -1]);
    expect(response.at("usage.prompt_tokens")).to.equal(3);
    expect(response.at("model")).to.equal("embed-test");
  });

  it("retries, and answers 502 when a vector is missing", async () => {
    fake.next({ status: 500 });
    expect((await client.post("/ai/embeddings", { input: "abc" })).status).to.equal(200);
    fake.setDefault({ rawBody: '{"object":"list","data":[]}' });
    const response = await client.post("/ai/embeddings", { input: "abc" });
    expect([response.status, response.at("error.code")]).to.deep.equal([502, "provider_failed"]);
  });
});
