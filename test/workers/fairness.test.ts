import { expect } from "chai";
import { startWorkers } from "../../workers/start-workers.ts";
import { startAgentUpstream } from "../support/agent-upstream.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type JobView = { jobId: string; status: string; startedAt?: string };

const later = { headers: { prefer: "respond-async" } };
const bulk = 20;

/** Ways to hand in a job of each queue that tenants submit to; each answers 202. */
const works: Record<string, (client: ApiClient, agentId: string) => Promise<string>> = {
  ingestion: async (client) =>
    (await client.post("/rag/ingest", { content: `Valve ${Math.random()}.` }, later)).string("jobId"),
  "agent-runs": async (client, agentId) =>
    (await client.post(`/agents/${agentId}/run`, { input: "Go." }, later)).string("jobId"),
  "composite-runs": async (client) => {
    const body = { pattern: "chain-of-thought", profile: "support", input: "Why?", models: ["gpt-5.4-mini"] };
    return (await client.post("/composite/execute", body, later)).string("jobId");
  },
};

/** All jobs are submitted while no worker runs, so that only the queue decides their order. */
describe("a tenant's bulk load", function () {
  this.timeout(40_000);
  let upstream: Awaited<ReturnType<typeof startAgentUpstream>>;
  let documents: DocumentServer;
  let test: TestPlatform;
  let loader: ApiClient;
  let other: ApiClient;
  const agents = new Map<ApiClient, string>();
  before(async () => {
    upstream = await startAgentUpstream();
    documents = await startDocumentServer();
    const env = {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: upstream.url,
      FETCH_ALLOW_ORIGINS: documents.origin,
    };
    test = await startPlatform({ workers: false, env });
    loader = makeClient({ url: test.url, key: test.keys.owner });
    other = makeClient({ url: test.url, key: test.keys.stranger });
    for (const client of [loader, other]) {
      const agent = { name: "Clerk", model: "gpt-5.4-mini", systemPrompt: "You answer." };
      agents.set(client, (await client.post("/agents", agent)).string("agentId"));
    }
  });
  after(async () => {
    await test.close();
    await upstream.close();
    documents.close();
  });

  const submit = (queue: string, client: ApiClient) => {
    const work = works[queue];
    if (!work) throw new Error(`there is no work for ${queue}`);
    return work(client, agents.get(client) ?? "");
  };
  const submitMany = async (queue: string, client: ApiClient, count: number) => {
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) ids.push(await submit(queue, client)); // in order, so that each is behind the last
    return ids;
  };
  const jobsOf = async (client: ApiClient) => ((await client.get("/jobs?limit=200")).body as { data: JobView[] }).data; // the client has checked its shape
  const startNarrow = () =>
    startWorkers(test.platform, {
      concurrencyFactor: 0, // one job of a queue at a time
      shutdownGraceMs: 1_000,
    });
  /** Runs everything, one job of a queue at a time; the jobs in the order in which they were begun. */
  const runAll = async () => {
    const workers = await startNarrow();
    try {
      const ended = await pollUntil(
        async () => {
          const jobs = (await Promise.all([loader, other].map(jobsOf))).flat();
          return jobs.every(({ status }) => status === "completed") ? jobs : null;
        },
        { timeoutMs: 30_000, everyMs: 100, what: "the end of all jobs" },
      );
      return ended.sort((a, b) => (a.startedAt ?? "").localeCompare(b.startedAt ?? ""));
    } finally {
      await workers.close();
    }
  };

  for (const queue of Object.keys(works)) {
    it(`does not keep another tenant's job waiting on ${queue}`, async () => {
      const load = await submitMany(queue, loader, bulk);
      const single = await submit(queue, other);
      const order = (await runAll()).map(({ jobId }) => jobId).filter((id) => id === single || load.includes(id));
      expect(order).to.have.length(bulk + 1);
      expect(order.indexOf(single), "its place, by the time of submission the last").to.be.at.most(2);
    });
  }

  it("takes turns with another tenant's, and neither waits for the end of the other", async () => {
    const first = await submitMany("ingestion", loader, bulk);
    const second = await submitMany("ingestion", other, bulk);
    const ours = new Set([...first, ...second]);
    const order = (await runAll()).map(({ jobId }) => jobId).filter((id) => ours.has(id));
    for (const ids of [first, second]) {
      const share = order.slice(0, bulk).filter((id) => ids.includes(id)).length;
      expect(share, "of the first half").to.be.within(bulk / 2 - 4, bulk / 2 + 4);
    }
  });

  it("comes after its own tenant's interactive jobs", async () => {
    const load = await submitMany("ingestion", loader, bulk);
    const waiting = loader.post(
      "/rag/ingest",
      { content: "Somebody waits for this.", title: "Awaited" },
      { headers: { prefer: "wait=30" } },
    );
    const isWaiting = ({ jobId, status }: JobView) => status === "queued" && !load.includes(jobId);
    const what = "the job that is waited for";
    const awaited = await pollUntil(async () => (await jobsOf(loader)).find(isWaiting), { what });
    const all = await runAll();
    expect((await waiting).status).to.equal(201);
    const order = all.filter(({ jobId }) => load.includes(jobId) || jobId === awaited.jobId);
    expect(order).to.have.length(bulk + 1);
    expect(order.findIndex(({ jobId }) => !load.includes(jobId))).to.be.within(0, 2);
  });

  it("does not block another tenant's job by slow ones that take all slots", async () => {
    const released = Promise.withResolvers<void>();
    const slow: string[] = [];
    const paths = ["/one", "/two", "/three"];
    for (const path of paths) {
      documents.put(path, async () => {
        await released.promise;
        return { body: "Slow." };
      });
      slow.push((await loader.post("/rag/ingest", { url: documents.origin + path }, later)).string("jobId"));
    }
    const workers = await startNarrow();
    try {
      await pollUntil(() => paths.some((path) => documents.hits(path) > 0), { what: "the first slow job" });
      const quick = await other.post("/rag/ingest", { content: "Quick." }, { headers: { prefer: "wait=20" } });
      expect(quick.status, quick.text).to.equal(201);
      const states = (await jobsOf(loader)).filter(({ jobId }) => slow.includes(jobId)).map(({ status }) => status);
      expect(states.sort(), "the slow ones meanwhile").to.deep.equal(["queued", "queued", "running"]);
    } finally {
      released.resolve();
      await workers.close();
    }
  });
});
