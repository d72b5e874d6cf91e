import { expect } from "chai";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const input = ["What does a lease protect?", "A job."];

describe("faults of a provider of embeddings", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let surfaces = 0;
  before(async function () {
    this.timeout(60_000);
    fake = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-openai",
        OPENAI_BASE_URL: fake.url,
        PROVIDER_FIRST_BYTE_TIMEOUT_MS: "300",
        PROVIDER_IDLE_TIMEOUT_MS: "150",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await fake.close();
  });

  /** One call; the ledger must say of it what the provider says it served, to the token. */
  const embed = async (...behaviours: Behaviour[]): Promise<ApiResponse> => {
    fake.reset();
    fake.next(...behaviours);
    const surface = `embedding-${++surfaces}`;
    const body = { input, model: "text-embedding-3-small" };
    const response = await client.post("/ai/embeddings", body, { headers: { "x-svc-surface": surface } });
    const row = await pollUntil(async () => {
      const rows = (await client.get("/usage?groupBy=surface")).at("data");
      return Array.isArray(rows) ? rows.find((one) => one.surface === surface) : undefined;
    });
    const { inputTokens } = fake.served();
    expect(row).to.include({ requests: 1, inputTokens, outputTokens: 0, errors: response.status === 200 ? 0 : 1 });
    if (response.status === 200) expect(response.at("usage.prompt_tokens")).to.equal(inputTokens);
    return response;
  };

  it("retries transient failures, and counts once", async () => {
    const limited = await embed({ status: 429, headers: { "retry-after-ms": "50" } });
    expect([limited.status, fake.requests.length]).to.deep.equal([200, 2]);
    const failing = await embed({ status: 500 }, { fault: { type: "reset" } });
    expect([failing.status, fake.requests.length]).to.deep.equal([200, 3]);
    expect((await embed()).at("data[1].embedding")).to.deep.equal([6, 1, 0.5, -1]);
  });

  it("gives up with the reason, and charges the failed attempts", async () => {
    const failed = await embed({ status: 503 }, { status: 503 }, { status: 503 });
    expect([failed.status, failed.at("error.details.status")]).to.deep.equal([502, 503]);
    await embed();
    const silent = await embed({ firstByteMs: 20_000, usage: "counted" });
    expect([silent.status, silent.at("error.code")]).to.deep.equal([504, "provider_timeout"]);
    await embed();
    const refused = await embed({ status: 400, errorMessage: "too many inputs" });
    expect([refused.status, refused.at("error.details.message")]).to.deep.equal([400, "too many inputs"]);
    const nonsense = { rawBody: '{"data": []}' };
    const empty = await embed(nonsense, nonsense, nonsense);
    expect([empty.status, empty.at("error.details")]).to.deep.equal([502, { code: "malformed_answer" }]);
    await embed();
  });

  it("counts tokens itself when no usage is reported", async () => {
    expect((await embed({ usage: false })).status).to.equal(200);
  });
});
