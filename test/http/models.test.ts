import { expect } from "chai";
import { patternIds } from "../../src/composite/patterns.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("GET /ai/models", () => {
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const list = async (query = "") => {
    const models = (await client.get(`/ai/models${query}`)).at("models");
    if (!Array.isArray(models)) throw new Error("there is no list of models");
    return models;
  };

  it("lists all providers' models with the interface's fields", async () => {
    const models = await list();
    expect(new Set(models.map((model) => model.provider))).to.deep.equal(new Set(["openai", "anthropic", "edge"]));
    for (const model of models) {
      expect(model).to.include.all.keys(
        "id",
        "name",
        "provider",
        "type",
        "contextWindow",
        "inputCostPer1k",
        "outputCostPer1k",
        "supportedFeatures",
      );
    }
    expect(models.find((model) => model.id === "switchyard-offline")).to.deep.include({
      provider: "edge",
      type: "chat",
      inputCostPer1k: 0,
      supportedFeatures: ["streaming", "tool_use", "tool_choice", "vision", "json_schema", "json_object"],
    });
  });

  it("filters by provider and type, alone and together", async () => {
    expect((await list("?provider=anthropic")).every((model) => model.provider === "anthropic")).to.equal(true);
    expect((await list("?type=coding")).every((model) => model.type === "coding")).to.equal(true);
    const both = await list("?provider=edge&type=embedding");
    expect(both.map((model) => model.id)).to.deep.equal(["switchyard-offline-embedding"]);
    expect(await list("?type=poetry")).to.deep.equal([]);
    const unknown = await client.get("/ai/models?provider=acme");
    expect([unknown.status, unknown.at("error.param")]).to.deep.equal([400, "provider"]);
  });

  it("shows whether each model can be called, why not, and which settings it takes", async () => {
    const models = await list();
    const find = (id: string) => models.find((model) => model.id === id);
    expect(find("switchyard-offline")).to.deep.include({ available: true, temperature: { min: 0, max: 2 } });
    expect(find("switchyard-offline")).not.to.have.property("unavailableBecause");
    expect(find("claude-haiku-4-5-20251001")).to.deep.include({ available: false, temperature: { min: 0, max: 1 } });
    expect(find("gpt-5.5")).to.deep.include({ reasoningEfforts: ["none", "low", "medium", "high", "xhigh"] });
    expect(find("gpt-5.5")?.supportedFeatures).to.include.members([
      "vision",
      "files",
      "json_schema",
      "reasoning_effort",
    ]);
    expect(find("gpt-5.5")?.settings).to.include.members(["verbosity", "prompt_cache_key"]);
    expect(find("gpt-4.1")).not.to.have.property("reasoningEfforts");
    expect(find("claude-opus-5-5")?.temperature).to.deep.equal({ min: 1, max: 1 });
    expect(find("gpt-4.1")?.unavailableBecause)
      .to.contain("PUT /ai/providers/openai/key")
      .and.contain("OPENAI_API_KEY");
    const edge = ["switchyard-offline", "switchyard-offline-embedding"];
    const idsOf = (listed: { id: string }[]) => listed.map(({ id }) => id);
    expect(idsOf(await list("?available=true"))).to.deep.equal(edge);
    expect(await list("?available=false")).to.have.length(models.length - edge.length);
    const called = idsOf((await client.get("/v1/models")).at("data") as { id: string }[]);
    expect(called.slice(0, edge.length)).to.deep.equal(edge);
    expect(called.slice(edge.length)).to.deep.equal(patternIds.map((id) => `composite:${id}`));
    const refused = await client.post("/ai/chat", { model: "gpt-4.1", messages: [{ role: "user", content: "hi" }] });
    expect(refused.string("error.message")).to.contain("PUT /ai/providers/openai/key");
  });

  it("may be kept for five minutes and is asked for again by its tag", async () => {
    const first = await client.get("/ai/models");
    expect(first.headers.get("cache-control")).to.contain("max-age=300");
    const etag = first.headers.get("etag") ?? "";
    const again = await client.get("/ai/models", { headers: { "if-none-match": `W/${etag}` } });
    expect([again.status, again.text]).to.deep.equal([304, ""]);
    const other = await client.get("/ai/models?provider=edge", { headers: { "if-none-match": etag } });
    expect(other.status).to.equal(200);
  });
});
