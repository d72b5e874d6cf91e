import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const agent = { name: "Desk", model: "meta-llm", systemPrompt: "You answer." };
const search = { type: "rag_query", query: "x" };
// biome-ignore lint/suspicious/noThenProperty: the interface names it so
const condition = { type: "condition", expression: "true", then: [{ ...search, topk: 1 }] };
const workflow = (step: object) => ({ name: "W", steps: [step] });
const provider = (more: object, ofModel: object = {}) => ({
  baseUrl: "https://desk.example.com/v1",
  key: "the-key-of-your-account",
  wire: "openai-chat",
  models: [{ id: "m", type: "chat", contextWindow: 8_000, inputUsdPerMTok: 1, outputUsdPerMTok: 1, ...ofModel }],
  ...more,
});

/** A misspelt field, its path, and the name that the message has; the error is that of the object which it stands in. */
const misspelt: [call: string, body: object, field: string, nearest: string][] = [
  ["POST /keys", { role: "member", collection: ["a"] }, "collection", "collections"],
  ["POST /keys", { expires_at: "2030-01-01T00:00:00Z" }, "expires_at", "expiresAt"],
  ["POST /ai/widget/key", { max_tokens: 5 }, "max_tokens", "maxTokens"],
  ["POST /ai/widget/key", { origins: ["https://acme.io"] }, "origins", "allowedOrigins"],
  ["PUT /budget", { limit: 5, limitUsd: 100 }, "limit", "limitUsd"],
  ["PUT /ai/fallbacks", { fallbacks: [{ model: "a", models: ["b"], max: 1 }] }, "fallbacks[0].max", "models"],
  ["PUT /settings", { callTextDays: 5, callTextsDays: 5 }, "callTextsDays", "callTextDays"],
  ["PUT /rag/settings", { embeddingModel: null, embedding_model: "x" }, "embedding_model", "embeddingModel"],
  ["PUT /ai/providers/custom/desk", provider({ baseURL: "x" }), "baseURL", "baseUrl"],
  ["PUT /ai/providers/custom/desk", provider({}, { maxOutputs: 5 }), "models[0].maxOutputs", "maxOutput"],
  [
    "POST /agents",
    { ...agent, tools: [{ type: "rag_query", config: {}, colection: "a" }] },
    "tools[0].colection",
    "config",
  ],
  [
    "POST /agents",
    { ...agent, tools: [{ type: "rag_query", config: { collections: "a" } }] },
    "tools[0].config.collections",
    "collection",
  ],
  [
    "POST /agents",
    { ...agent, tools: [{ type: "http_request", config: { allowedHosts: ["a.io"], method: ["GET"] } }] },
    "tools[0].config.method",
    "methods",
  ],
  ["POST /agents", { ...agent, publish: { name: "a", description: "b", roles: ["admin"] } }, "publish.roles", "name"],
  ["POST /agents", { ...agent, maxTokns: 5 }, "maxTokns", "maxTokens"],
  ["POST /workflows", workflow({ ...search, collections: ["a"] }), "steps[0].collections", "collection"],
  [
    "POST /workflows",
    workflow({ ...search, retry: { attempts: 2, backoffMs: 1, backoffSeconds: 1 } }),
    "steps[0].retry.backoffSeconds",
    "backoffMs",
  ],
  ["POST /workflows", workflow(condition), "steps[0].then[0].topk", "topK"],
  ["POST /workflows", { ...workflow(search), inputSchem: { type: "object" } }, "inputSchem", "inputSchema"],
  ["POST /rag/tools", { name: "s", description: "d", filters: { site: "A" } }, "filters", "filter"],
  ["POST /rag/query", { query: "x", colection: "a" }, "colection", "collection"],
  ["POST /rag/query", { query: "x", minSimilarity: 0.5 }, "minSimilarity", "minScore"],
  ["POST /rag/query", { query: "x", filters: { type: "eq", key: "site", value: "A" } }, "filters", "filter"],
  ["POST /rag/query", { query: "x", collection: "default", collections: ["b"] }, "collections", "collection"],
  ["POST /rag/ingest", { content: "x", expireAt: "2030-01-01T00:00:00Z" }, "expireAt", "expiresAt"],
  ["POST /rag/ingest", { content: "x", callback: { url: "https://a.io", secret: "s" } }, "callback.secret", "url"],
  [
    "POST /v1/vector_stores",
    { expires_after: { anchor: "last_active_at", days: 1, hours: 2 } },
    "expires_after.hours",
    "anchor",
  ],
];

/** Null in a field that limits: without it there would be no limit. */
const nulls: [call: string, body: object, param: string][] = [
  ["PUT /settings", { callTextDays: null }, "callTextDays"],
  ["POST /keys", { collections: null }, "collections"],
  ["POST /keys", { expiresAt: null }, "expiresAt"],
  ["POST /ai/widget/key", { maxTokens: null }, "maxTokens"],
  ["POST /ai/widget/key", { agent_id: null }, "agent_id"],
  ["POST /agents", { ...agent, maxTokens: null }, "maxTokens"],
  [
    "POST /agents",
    { ...agent, tools: [{ type: "rag_query", config: { documentIds: null } }] },
    "tools[0].config.documentIds",
  ],
  ["POST /workflows", workflow({ ...search, collection: null }), "steps[0].collection"],
  ["POST /workflows", { ...workflow(search), inputSchema: null }, "inputSchema"],
  ["PUT /ai/providers/custom/desk", provider({}, { maxOutput: null }), "models[0].maxOutput"],
  ["POST /rag/tools", { name: "s", description: "d", documentIds: null }, "documentIds"],
  ["POST /rag/query", { query: "x", collection: null }, "collection"],
  ["POST /rag/query", { query: "x", filter: null }, "filter"],
  ["POST /rag/ingest", { content: "x", expiresAt: null }, "expiresAt"],
];

describe("what limits is never dropped", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  before(async () => {
    test = await startPlatform();
    owner = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(() => test.close());

  const send = (call: string, body?: object) => {
    const [method = "", path = ""] = call.split(" ");
    return owner.request(method, path, body ? { body } : {});
  };

  for (const [call, body, field, nearest] of misspelt) {
    const [, parent, name] = /^(?:(.*)\.)?(.*)$/.exec(field) ?? [];
    it(`${call} refuses ${field}, and names ${nearest}`, async () => {
      const answer = await send(call, body);
      expect([answer.status, answer.at("error.code"), answer.at("error.param")], answer.text).to.deep.equal([
        400,
        "invalid_request",
        parent ?? "body",
      ]);
      expect(answer.string("error.message")).to.match(new RegExp(`\\b${name}\\b.*\\b${nearest}\\b`));
    });
  }

  for (const [call, body, param] of nulls) {
    it(`${call} refuses null as ${param}`, async () => {
      const answer = await send(call, body);
      expect([answer.status, answer.at("error.param")], answer.text).to.deep.equal([400, param]);
      expect(answer.string("error.message")).to.match(/not null/);
    });
  }

  it("refuses the limits of a run that are misspelt, null, or beside its budget", async () => {
    const id = (await owner.post("/agents", agent)).string("agentId");
    for (const [body, param] of [
      [{ budget: { maxCostUSD: 1 } }, "budget"],
      [{ budget: { maxCostUsd: null } }, "budget.maxCostUsd"],
      [{ budget: null }, "budget"],
      [{ maxCostUsd: 0.01 }, "body"],
    ] as const) {
      const answer = await owner.post(`/agents/${id}/run`, { input: "Hi", ...body });
      expect([answer.status, answer.at("error.param")], answer.text).to.deep.equal([400, param]);
      expect(answer.string("error.message")).to.match(/maxCostUsd|budget/);
    }
  });

  it("accepts a narrowing field of a query under a similar name", async () => {
    const ids: string[] = [];
    for (const [content, metadata, collection] of [
      ["The pump of site A is bled in spring.", { site: "A" }, "north"],
      ["The pump of site B is bled in autumn.", { site: "B" }, "south"],
    ] as const) {
      ids.push((await owner.post("/rag/ingest", { content, metadata, collection })).string("documentId"));
    }
    const [first] = ids;
    const found = async (body: object) => {
      const answer = await owner.post("/rag/query", { query: "When is the pump bled?", ...body });
      expect([answer.status, answer.headers.get("x-svc-ignored")], answer.text).to.deep.equal([200, null]);
      return (answer.at("results") as { documentId: string; score: number }[]).map(({ documentId }) => documentId);
    };
    expect(await found({})).to.have.members(ids);
    for (const body of [
      { collections: ["north"] },
      { Collection: "north" },
      { filters: { site: "A" } },
      { document_ids: [first] },
      { documentId: first },
    ]) {
      expect(await found(body), JSON.stringify(body)).to.deep.equal([first]);
    }
    for (const body of [{ minScore: 1 }, { min_score: 1 }, { score_threshold: 1 }]) {
      expect(await found(body), JSON.stringify(body)).to.deep.equal([]);
    }
    expect(await found({ minScore: 0 })).to.have.members(ids);
  });

  it("says of a collection that is not there that it is not, on queries, agents, workflows and tools", async () => {
    const publish = { name: "missing", description: "d" };
    for (const [call, body, param] of [
      ["POST /rag/query", { query: "x", collection: "nowhere" }, "collection"],
      ["POST /rag/query", { query: "x", collection: ["north", "nowhere"] }, "collection"],
      ["POST /rag/tools", { ...publish, collection: "nowhere" }, "collection"],
      [
        "POST /agents",
        { ...agent, tools: [{ type: "rag_query", config: { collection: "nowhere" } }] },
        "tools[0].config.collection",
      ],
      ["POST /workflows", workflow({ ...search, collection: "nowhere" }), "steps[0].collection"],
    ] as const) {
      const answer = await send(call, body);
      expect([answer.status, answer.at("error.code"), answer.at("error.param")], call).to.deep.equal([
        404,
        "not_found",
        param,
      ]);
      expect(answer.string("error.message")).to.contain("nowhere");
    }
    expect((await owner.post("/rag/query", { query: "x", collection: "default" })).status).to.equal(200);
  });

  it("names what nobody reads at every depth of other bodies, each once, and no more than 20", async () => {
    const part = { type: "text", text: "Hi", extra: 1 };
    const messages = [
      { role: "user", content: [part, part], at: 1 },
      { role: "user", content: "Hi", at: 2 },
    ];
    const chat = await owner.post("/ai/chat", { messages, tune: { a: 1 } });
    const names = "messages[0].content[0].extra, messages[0].at, tune";
    expect([chat.status, chat.headers.get("x-svc-ignored")]).to.deep.equal([200, names]);
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, n]));
    const crowded = await owner.post("/ai/chat", { messages: [{ role: "user", content: "Hi", ...many }] });
    expect(crowded.headers.get("x-svc-ignored")?.split(", ")).to.have.length(20);
  });

  for (const [path, nearest] of [
    ["/ai/logs?outcome=failed", "status"],
    ["/agents?limt=1", "limit"],
    ["/jobs?state=failed", "status"],
    ["/rag/documents?collections=a", "collection"],
    ["/ai/models?providers=x", "provider"],
    ["/usage?group_by=day", "groupBy"],
    ["/composite/patterns?profile=x", ""],
    ["/v1/files?purposes=batch", "purpose"],
    ["/v1/models?provider=x", "limit"],
  ] as const) {
    it(`GET ${path} is refused${nearest && `, and names ${nearest}`}`, async () => {
      const answer = await owner.get(path);
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.string("error.message")).to.match(new RegExp(`\\b${nearest}\\b`));
    });
  }
});
