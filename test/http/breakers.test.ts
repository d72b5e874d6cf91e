import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const ask = { model: "gpt-5.4-nano", messages: [{ role: "user", content: "Are you there?" }] };
const failing = { status: 500 };

describe("the breaker of a provider that fails", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let stranger: ApiClient;
  beforeEach(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: { OPENAI_API_KEY: "sk-of-the-platform-0123456789", OPENAI_BASE_URL: upstream.url },
    });
    client = makeClient({ url: test.url, key: test.keys.admin });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
  });
  afterEach(async () => {
    await test.close();
    await upstream.close();
  });

  const breakerOf = async (who: ApiClient) => {
    const answer = await who.post("/ai/chat", ask);
    if (answer.status === 200) return "closed";
    return answer.at("error.details.code") === "breaker_open" ? "open" : "closed";
  };
  /** Two chats, of three attempts each, fail. */
  const open = async () => {
    upstream.setDefault(failing);
    for (let chats = 0; chats < 2; chats += 1) await client.post("/ai/chat", ask);
    upstream.setDefault({});
    expect(await breakerOf(client)).to.equal("open");
  };

  it("opens for the tenant whose chats the provider answers with errors, and for no other", async () => {
    await open();
    expect((await stranger.post("/ai/chat", ask)).status, "of the same platform's key").to.equal(200);
  });

  it("opens for the model whose calls failed, and for no other of the key", async () => {
    await open();
    expect((await client.post("/ai/chat", { ...ask, model: "gpt-5.4-mini" })).status).to.equal(200);
  });

  it("stays closed for requests that the provider refuses", async () => {
    upstream.setDefault({ status: 400 });
    for (let chats = 0; chats < 6; chats += 1) await client.post("/ai/chat", ask);
    upstream.setDefault({});
    expect((await client.post("/ai/chat", ask)).status).to.equal(200);
  });

  it("opens for all tenants when the provider cannot be reached", async () => {
    await upstream.close();
    for (let chats = 0; chats < 2; chats += 1) await client.post("/ai/chat", ask);
    expect(await breakerOf(stranger)).to.equal("open");
    upstream = await startFakeProvider();
  });

  it("is a new one when the tenant replaces its key", async () => {
    const put = await client.request("PUT", "/ai/providers/openai/key", { body: { key: "sk-old-0123456789abcdef" } });
    expect(put.status).to.equal(200);
    await open();
    const rotated = await client.post("/ai/providers/openai/rotate", { key: "sk-new-0123456789abcdef" });
    expect(rotated.status).to.equal(200);
    expect((await client.post("/ai/chat", ask)).status).to.equal(200);
  });
});
