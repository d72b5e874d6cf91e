import { expect } from "chai";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type Refusal, type RefusingStore, startRefusingStore } from "../support/refusing-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { untilReady } from "../support/until-ready.ts";

const later = { headers: { prefer: "respond-async" } };
const paid = { model: "gpt-5.4-mini", messages: [{ role: "user", content: "When does the ferry leave?" }] };

const callOfTool = {
  ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
  params: { name: "svc_org_create", arguments: { name: "Ferries" } },
};

const insertCommand = 'to execute command { insert: "jobs", ordered: true }';
const refusals: (Refusal & { name: string; status: number; ours: string })[] = [
  {
    name: "a MongoDB whose disk is full",
    ...{ code: 14_031, codeName: "OutOfDiskSpace", errmsg: "available disk space is less than required minimum" },
    ...{ status: 507, ours: "storage_full" },
  },
  {
    name: "an Atlas cluster over its quota",
    ...{ code: 8_000, codeName: "AtlasError", errmsg: "you are over your space quota, using 513 MB of 512 MB" },
    ...{ status: 507, ours: "storage_full" },
  },
  {
    name: "an account that may only read",
    ...{ code: 13, codeName: "Unauthorized", errmsg: `not authorized on switchyard ${insertCommand}` },
    ...{ status: 503, ours: "store_read_only" },
  },
  {
    name: "an account of Atlas that may only read",
    ...{
      code: 8_000,
      codeName: "AtlasError",
      errmsg: "user is not allowed to do action [insert] on [switchyard.jobs]",
    },
    ...{ status: 503, ours: "store_read_only" },
  },
  {
    name: "a member that is not the primary",
    ...{ code: 10_107, codeName: "NotWritablePrimary", errmsg: "not primary" },
    ...{ status: 503, ours: "store_read_only" },
  },
  {
    name: "a cluster that is being moved",
    ...{ code: 371, codeName: "UserWritesBlocked", errmsg: "User writes blocked" },
    ...{ status: 503, ours: "store_read_only" },
  },
];

describe("a store that takes no writes", function () {
  this.timeout(40_000);
  let test: TestPlatform;
  let client: ApiClient;
  let store: RefusingStore;
  let upstream: AgentUpstream;

  before(async () => {
    [store, upstream] = [await startRefusingStore(), await startAgentUpstream()];
    test = await startPlatform({
      services: "private",
      env: {
        MONGODB_URL: store.url,
        MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: upstream.url,
        JOB_LEASE_MS: "2000",
        RECONCILE_EVERY_MS: "300",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
    const ready = await client.post("/rag/ingest", { content: "The ferry leaves at dawn.", title: "Ferry" });
    expect(ready.status).to.equal(201);
  });
  afterEach(() => store.rejectWrites(undefined));
  after(async () => {
    await test?.close();
    await upstream.close();
    await store.close();
  });

  const submit = (title: string) => client.post("/rag/ingest", { content: `About ${title}.`, title }, later);

  for (const { name, status, ours, ...refusal } of refusals) {
    it(`${name}: ${status} ${ours} until it takes them again`, async () => {
      store.rejectWrites(refusal);
      const refused = await submit("Refused");
      expect([refused.status, refused.at("error.code")], refused.text).to.deep.equal([status, ours]);
      expect(refused.text).to.not.include(refusal.errmsg);
      expect(Number(refused.headers.get("retry-after"))).to.be.at.least(1);
      const tool = await client.post("/mcp", callOfTool);
      expect([tool.status, tool.at("error.data.code")], tool.text).to.deep.equal([503, ours]);
      await pollUntil(async () => (await client.post("/ai/chat", paid)).status === status, { what: "a refused chat" });
      const { length: made } = upstream.calls;
      expect((await client.post("/ai/chat", paid)).at("error.code")).to.equal(ours);
      expect(upstream.calls.length, "calls of the provider").to.equal(made);
      expect((await client.post("/rag/query", { query: "dawn" })).at("results[0].title")).to.equal("Ferry");
      const ready = await untilReady(client, 503);
      expect(ready.string("parts.store.detail")).to.equal(refused.string("error.message"));

      store.rejectWrites(undefined);
      expect((await client.post("/ai/chat", paid)).status).to.equal(200);
      expect((await submit("Accepted")).status).to.equal(202);
      await untilReady(client, 200);
    });
  }

  it("keeps a job that was accepted, and completes it later", async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    upstream.play(() => held.then(() => ({ text: "At dawn." })));
    const agent = await client.post("/agents", { name: "Clerk", model: paid.model, systemPrompt: "You answer." });
    const run = await client.post(`/agents/${agent.string("agentId")}/run`, { input: "When?" }, later);
    await pollUntil(() => upstream.calls.length === 1, { what: "the running job" });
    store.rejectWrites({ code: 13, codeName: "Unauthorized", errmsg: `not authorized on switchyard ${insertCommand}` });
    expect((await submit("Refused")).status).to.equal(503);
    letGo();
    await untilReady(client, 503);
    store.rejectWrites(undefined);
    const job = await pollUntil(
      async () => {
        const answer = await client.get(`/jobs/${run.string("jobId")}`);
        return ["completed", "failed"].includes(answer.string("status")) ? answer : null;
      },
      { timeoutMs: 20_000, what: "the end of the job" },
    );
    expect([job.at("status"), job.at("result.output")], job.text).to.deep.equal(["completed", "At dawn."]);
  });
});
