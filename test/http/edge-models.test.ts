import { expect } from "chai";
import { followServedModels } from "../../src/gateway/providers/edge/served-models.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform } from "../support/start-platform.ts";

const question = { messages: [{ role: "user", content: "What does a lease do?" }] };
const listOf = (...ids: string[]) => ids.map((id) => ({ id, object: "model" }));

describe("an edge server whose models no setting names", () => {
  let edge: FakeProvider;
  beforeEach(async () => {
    edge = await startFakeProvider();
  });
  afterEach(() => edge.close());

  /** What `use` finds at a platform with the edge server. */
  async function withPlatform(env: object, use: (client: ReturnType<typeof makeClient>) => Promise<void>) {
    const given = { EDGE_BASE_URL: edge.url, EDGE_API_KEY: "sk-edge-0123456789abcdef", ...env };
    const test = await startPlatform({ workers: false, env: given });
    try {
      await use(makeClient({ url: test.url, key: test.keys.member }));
    } finally {
      await test.close();
    }
  }
  const edgeIds = async (client: ReturnType<typeof makeClient>, type: string) =>
    ((await client.get(`/ai/models?provider=edge&type=${type}`)).at("models") as { id: string }[]).map(({ id }) => id);

  it("serves all that it lists; the first that chats is the default", async () => {
    const window = { id: "qwen/qwen3-32b", max_model_len: 40_960 };
    edge.listModels([...listOf("nomic-embed-text", "llama-4", "gpt-4.1", "auto"), window, ...listOf("llama-4")]);
    await withPlatform({}, async (client) => {
      expect(await edgeIds(client, "chat")).to.deep.equal(["llama-4", "qwen/qwen3-32b"]);
      expect(await edgeIds(client, "embedding")).to.deep.equal(["switchyard-offline-embedding", "nomic-embed-text"]);
      expect((await client.get("/ai/models?provider=edge&type=chat")).at("models[1].contextWindow")).to.equal(40_960);
      for (const [model, served] of [
        ["meta-llm", "llama-4"],
        ["default", "llama-4"],
        ["qwen/qwen3-32b", "qwen/qwen3-32b"],
      ]) {
        const answered = await client.post("/ai/chat", { ...question, model });
        expect(answered.at("model"), answered.text).to.equal(served);
        expect(edge.requests.at(-1)?.body.model).to.equal(served);
      }
      const embedded = await client.post("/ai/embeddings", { model: "nomic-embed-text", input: "one" });
      expect([embedded.status, edge.requests.at(-1)?.body.model]).to.deep.equal([200, "nomic-embed-text"]);
      const elsewhere = await client.post("/ai/chat", { ...question, model: "gpt-4.1" });
      expect(elsewhere.at("error.code"), "the name is OpenAI's").to.equal("provider_not_configured");
    });
  });

  it("leaves a name to the custom provider that a tenant has given it", async () => {
    edge.listModels(listOf("llama-4", "lab/small"));
    const lab = await startFakeProvider();
    const given = { EDGE_BASE_URL: edge.url, FETCH_ALLOW_ORIGINS: lab.origin };
    const test = await startPlatform({ workers: false, env: given });
    try {
      const admin = makeClient({ url: test.url, key: test.keys.admin });
      const stranger = makeClient({ url: test.url, key: test.keys.stranger });
      const models = [{ id: "small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 1, outputUsdPerMTok: 1 }];
      const body = { baseUrl: lab.url, key: "sk-lab-0123456789abcdef", wire: "openai-chat", models };
      const set = await admin.request("PUT", "/ai/providers/custom/lab", { body });
      expect(set.status, set.text).to.equal(200);
      for (const client of [admin, stranger]) await client.post("/ai/chat", { ...question, model: "lab/small" });
      expect([lab, edge].map(({ requests }) => requests.map((one) => one.body.model))).to.deep.equal([
        ["small"],
        ["lab/small"],
      ]);
      const listed = (await admin.get("/ai/models")).at("models") as { id: string; provider: string }[];
      expect(listed.filter(({ id }) => id === "lab/small").map(({ provider }) => provider)).to.deep.equal(["lab"]);
    } finally {
      await test.close();
      await lab.close();
    }
  });

  it("serves one model if EDGE_MODEL names it, and is not asked for its list", async () => {
    edge.listModels(listOf("llama-4"));
    await withPlatform({ EDGE_MODEL: "mine" }, async (client) => {
      expect(await edgeIds(client, "chat")).to.deep.equal(["mine"]);
    });
  });

  for (const [what, behaviour] of [
    ["refuses", { status: 500 }],
    ["is silent", { firstByteMs: 600_000 }],
    ["lists no models", { rawBody: "<html></html>" }],
  ] as const) {
    it(`does not keep the platform from starting when it ${what}`, async () => {
      edge.setDefault(behaviour);
      await withPlatform({}, async (client) => {
        expect(await edgeIds(client, "chat")).to.deep.equal(["default"]);
        edge.setDefault({});
        expect((await client.post("/ai/chat", question)).at("model")).to.equal("default");
      });
    });
  }

  it("is asked again, and its last list stays valid while it fails", async () => {
    const lists: string[][] = [];
    const settings = { baseUrl: edge.url, apiKey: undefined, model: undefined, embeddingModel: undefined };
    edge.listModels(listOf("llama-4"));
    const followed = followServedModels({
      edge: settings,
      onListed: (models) => void lists.push(models.map(({ id }) => id)),
      logger: makeLogger({ level: "silent", name: "test" }),
      everyMs: 10,
    });
    try {
      await followed.listed;
      expect(lists.at(-1)).to.deep.equal(["llama-4"]);
      edge.listModels(undefined);
      await pollUntil(async () => edge.requests.length > 0);
      edge.listModels(listOf("llama-5", ...Array.from({ length: 300 }, (_, n) => `m-${n}`)));
      await pollUntil(async () => lists.at(-1)?.[0] === "llama-5");
      expect(lists.at(-1)).to.have.length(200);
    } finally {
      await followed.stop();
    }
  });
});
