import { expect } from "chai";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { callTool } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const agent = { name: "Desk", model: "meta-llm", systemPrompt: "You answer." };
const workflow = { name: "Desk", steps: [{ type: "rag_query", query: "Pumps" }] };
const provider = {
  baseUrl: "https://models.example.com/v1",
  key: "sk-own-quota-0123456789abcdef",
  wire: "openai-chat",
  models: [{ id: "small", type: "chat", contextWindow: 8_000, inputUsdPerMTok: 1, outputUsdPerMTok: 2 }],
};
let nextProvider = 0;
const later = { headers: { prefer: "respond-async" } };

describe("quotas", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  let stranger: ApiClient;
  before(async () => {
    const env = {
      MAX_DEFINITIONS: "3",
      MAX_DOCUMENTS: "3",
      MAX_FILES: "2",
      MAX_KEYS: "5",
      MAX_ORGANIZATIONS: "2",
      MAX_OPEN_BATCHES: "2",
      MAX_STORED_BYTES: "80000",
      MAX_OPEN_JOBS: "6",
      MAX_COLLECTIONS: "2",
    };
    test = await startPlatform({ workers: false, env });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
  });
  after(() => test.close());

  const upload = (client: ApiClient) => {
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob(["{}"]), "requests.jsonl");
    return client.request("POST", "/v1/files", { raw: form });
  };
  const cases: {
    name: string;
    limit: number;
    setting: string;
    make(client: ApiClient): Promise<ApiResponse>;
    remove(client: ApiClient, made: ApiResponse): Promise<ApiResponse>;
  }[] = [
    {
      name: "agents",
      limit: 3,
      setting: "MAX_DEFINITIONS",
      make: (client) => client.post("/agents", agent),
      remove: (client, made) => client.delete(`/agents/${made.string("agentId")}`),
    },
    {
      name: "workflows",
      limit: 3,
      setting: "MAX_DEFINITIONS",
      make: (client) => client.post("/workflows", workflow),
      remove: (client, made) => client.delete(`/workflows/${made.string("workflowId")}`),
    },
    {
      name: "documents",
      limit: 3,
      setting: "MAX_DOCUMENTS",
      make: (client) => client.post("/rag/ingest", { content: "A pump moves water." }, later),
      remove: (client, made) => client.delete(`/rag/documents/${made.string("documentId")}`),
    },
    {
      name: "files",
      limit: 2,
      setting: "MAX_FILES",
      make: upload,
      remove: (client, made) => client.delete(`/v1/files/${made.string("id")}`),
    },
    {
      name: "keys",
      limit: 5,
      setting: "MAX_KEYS",
      make: (client) => client.post("/keys", { role: "member" }),
      remove: (client, made) => client.delete(`/keys/${made.string("keyId")}`),
    },
    {
      name: "collections",
      limit: 2,
      setting: "MAX_COLLECTIONS",
      make: (client) => client.post("/v1/vector_stores", {}),
      remove: (client, made) => client.delete(`/v1/vector_stores/${made.string("id")}`),
    },
    {
      name: "customProviders",
      limit: 20,
      setting: "20 custom providers",
      make: (client) => client.request("PUT", `/ai/providers/custom/p-${nextProvider++}`, { body: provider }),
      remove: (client, made) => client.delete(`/ai/providers/custom/${made.string("name")}`),
    },
    {
      name: "widgetKeys",
      limit: 5,
      setting: "MAX_KEYS",
      make: (client) => client.post("/ai/widget/key", {}),
      remove: (client, made) => client.delete("/ai/widget/key", { body: { id: made.string("id") } }),
    },
  ];
  for (const { name, limit, setting, make, remove } of cases) {
    it(`limit how many ${name} a tenant has, and GET /usage reports how many there are`, async () => {
      const used = async () => {
        const quota = (await owner.get("/usage")).at(`quotas.${name}`) as { used: number; limit: number };
        expect(quota.limit).to.equal(limit);
        return quota.used;
      };
      const made: ApiResponse[] = [];
      for (let count = await used(); count < limit; count += 1) made.push(await make(owner));
      expect(made.map(({ status }) => status).filter((status) => status >= 300)).to.deep.equal([]);
      expect(await used()).to.equal(limit);
      const refused = await make(owner);
      expect([refused.status, refused.at("error.code")]).to.deep.equal([413, "quota_exceeded"]);
      expect(refused.at("error.details")).to.deep.equal({ quota: name, limit });
      expect(refused.string("error.message")).to.include(setting);
      expect(refused.headers.get("retry-after"), "waiting does not help").to.equal(null);
      expect(await used(), "nothing is left of what was refused").to.equal(limit);

      expect((await make(stranger)).status, "another tenant").to.be.oneOf([200, 201, 202]);
      const [first] = made;
      if (first) expect((await remove(owner, first)).status).to.be.oneOf([200, 204]);
      expect((await make(owner)).status, "in the place of the deleted one").to.be.oneOf([200, 201, 202]);
      expect((await make(owner)).status).to.equal(413);
    });
  }

  /** What `GET /usage` reports of a quota to a client. */
  const usedBy = async (client: ApiClient, name: string) =>
    (await client.get("/usage")).at(`quotas.${name}`) as { used: number; limit: number };
  /** A tenant of its own. */
  const found = async (name: string) => {
    const { tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant(name);
    const { key } = await tenancy.createKey({ tenantId, role: "owner", subject: "o" });
    return makeClient({ url: test.url, key });
  };

  it("limit how many organizations a tenant founds", async () => {
    const founder = await found("founder");
    const create = (name: string) => callTool(founder, "svc_org_create", { name });
    for (const name of ["One", "Two"]) expect((await create(name)).isError).to.equal(false);
    const refused = await create("Three");
    expect(refused.isError).to.equal(true);
    expect(JSON.stringify(refused.value)).to.include("quota_exceeded").and.include("MAX_ORGANIZATIONS");
    expect(await usedBy(founder, "organizations")).to.deep.equal({ used: 2, limit: 2 });
  });

  it("limit the bytes of documents and files together, whatever their number", async () => {
    const keeper = await found("keeper");
    const ingest = (bytes: number) => keeper.post("/rag/ingest", { content: "é".repeat(bytes / 2) }, later);
    const store = (bytes: number) => {
      const form = new FormData();
      form.set("purpose", "batch");
      form.set("file", new Blob(["x".repeat(bytes)]), "requests.jsonl");
      return keeper.request("POST", "/v1/files", { raw: form });
    };
    const first = await ingest(48_000);
    expect(first.status).to.equal(202);
    const file = await store(24_000);
    expect(file.status).to.equal(200);
    expect(await usedBy(keeper, "storedBytes")).to.deep.equal({ used: 72_000, limit: 80_000 });
    for (const refused of [await ingest(8_002), await store(8_001)]) {
      expect([refused.status, refused.at("error.code")]).to.deep.equal([413, "quota_exceeded"]);
      expect(refused.at("error.details")).to.deep.equal({ quota: "storedBytes", limit: 80_000 });
    }
    expect((await usedBy(keeper, "documents")).used, "nothing is left of what was refused").to.equal(1);
    expect((await ingest(8_000)).status, "to the last byte").to.equal(202);
    expect((await keeper.delete(`/rag/documents/${first.string("documentId")}`)).status).to.equal(204);
    expect((await keeper.delete(`/v1/files/${file.string("id")}`)).status).to.equal(200);
    expect((await usedBy(keeper, "storedBytes")).used).to.equal(8_000);
    expect((await store(72_000)).status, "in the place of the deleted ones").to.equal(200);
  });

  it("limit the bytes that are kept for repeats, and answer repeats and calls without a key all the same", async () => {
    const caller = await found("repeater");
    const chat = (headers: Record<string, string>, client = caller) =>
      client.post("/ai/chat", { messages: [{ role: "user", content: "Hello" }] }, { headers });
    const first = await chat({ "idempotency-key": "call-0" });
    let last = first;
    for (let calls = 1; last.status === 200 && calls < 10; calls += 1) {
      last = await chat({ "idempotency-key": `call-${calls}` });
    }
    expect([last.status, last.at("error.code")]).to.deep.equal([413, "quota_exceeded"]);
    expect(last.at("error.details")).to.deep.equal({ quota: "idempotencyBytes", limit: 4_000 });
    expect(last.string("error.message")).to.include("without an Idempotency-Key");
    expect((await usedBy(caller, "idempotencyBytes")).used).to.be.within(4_000 - 512, 6_000);
    const repeated = await chat({ "idempotency-key": "call-0" });
    expect([repeated.status, repeated.text]).to.deep.equal([200, first.text]);
    expect((await chat({})).status, "without a key").to.equal(200);
    expect((await chat({ "idempotency-key": "call-0" }, stranger)).status, "of another tenant").to.equal(200);
  });

  it("limit the collections that ingests make, and leave no document of a refused one", async () => {
    const keeper = await found("collector");
    const ingest = (collection: string) => keeper.post("/rag/ingest", { content: "A pump.", collection }, later);
    const statuses = [];
    for (const name of ["one", "two", "three", "two"]) statuses.push((await ingest(name)).status);
    expect(statuses).to.deep.equal([202, 202, 413, 202]);
    expect(await usedBy(keeper, "collections")).to.deep.equal({ used: 2, limit: 2 });
    expect((await usedBy(keeper, "documents")).used).to.equal(3);
  });

  it("limit the batches of files of vector stores, also of those that are made with files", async () => {
    const caller = await found("filler");
    const file = (await upload(caller)).string("id");
    const store = (await caller.post("/v1/vector_stores", { file_ids: [file] })).string("id");
    const add = () => caller.post(`/v1/vector_stores/${store}/file_batches`, { file_ids: [file] });
    expect((await add()).status).to.equal(200);
    for (const refused of [await add(), await caller.post("/v1/vector_stores", { file_ids: [file] })]) {
      expect([refused.status, refused.at("error.code")]).to.deep.equal([413, "quota_exceeded"]);
      expect(refused.at("error.details")).to.deep.equal({ quota: "vectorStoreBatches", limit: 2 });
      expect(refused.string("error.message")).to.include("MAX_COLLECTIONS").and.include("seven days");
    }
    expect(await usedBy(caller, "vectorStoreBatches")).to.deep.equal({ used: 2, limit: 2 });
    expect((await usedBy(caller, "collections")).used, "no store is left of the refused call").to.equal(1);
    expect((await caller.delete(`/v1/vector_stores/${store}`)).status).to.equal(200);
    expect((await caller.post("/v1/vector_stores", { file_ids: [file] })).status, "in its place").to.equal(200);
  });

  it("limit the batches of a tenant that have not ended", async () => {
    const caller = await found("batcher");
    const input_file_id = (await upload(caller)).string("id");
    const create = () =>
      caller.post("/v1/batches", { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h" });
    const [first, second, third] = [await create(), await create(), await create()];
    expect([first.status, second.status]).to.deep.equal([200, 200]);
    expect([third.status, third.at("error.code")]).to.deep.equal([429, "too_many_concurrent"]);
    expect(third.at("error.details")).to.deep.equal({ quota: "openBatches", limit: 2 });
    expect(await usedBy(caller, "openBatches")).to.deep.equal({ used: 2, limit: 2 });
  });

  it("take a replacement for no further one", async () => {
    const [first] = (await owner.get("/agents")).at("data") as { agentId: string }[];
    const replaced = await owner.request("PUT", `/agents/${first?.agentId}`, { body: agent });
    expect(replaced.at("version")).to.equal(2);
  });

  it("limit the jobs of a tenant that have not ended, and say when to come back", async () => {
    const [made] = (await stranger.get("/agents")).at("data") as { agentId: string }[];
    const run = () => stranger.post(`/agents/${made?.agentId}/run`, { input: "Hello" }, later);
    const open = async () => (await stranger.get("/usage")).at("quotas.openJobs.used");
    let last = await run();
    for (let calls = 1; last.status === 202 && calls < 10; calls += 1) last = await run();
    expect([last.status, last.at("error.code")]).to.deep.equal([429, "too_many_concurrent"]);
    expect(last.at("error.details")).to.deep.equal({ quota: "openJobs", limit: 6 });
    expect(last.headers.get("retry-after")).to.equal("5");
    expect(await open()).to.equal(6);
    const tool = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "svc_agent_run", arguments: { agentId: made?.agentId, input: "Hello" } },
    };
    expect((await stranger.post("/mcp", tool)).text, "as a tool").to.include("MAX_OPEN_JOBS");
    const [job] = (await stranger.get("/jobs?status=queued")).at("data") as { jobId: string }[];
    expect((await stranger.post(`/jobs/${job?.jobId}/cancel`)).status).to.be.oneOf([200, 202]);
    const ended = async () => (await stranger.get(`/jobs/${job?.jobId}`)).at("status") === "cancelled";
    await pollUntil(ended, { what: "the end of the cancelled job" }); // a worker may have begun it just then
    const next = await run();
    expect(next.status, `in the place of the cancelled one: ${next.text}`).to.equal(202);
  });
});
