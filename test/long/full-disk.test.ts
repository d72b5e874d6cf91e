import { expect } from "chai";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { skipTest } from "../support/skip-test.ts";
import { mountDisk, type SmallDisk } from "../support/small-disk.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { untilReady } from "../support/until-ready.ts";

const later = { headers: { prefer: "respond-async" } };
const paid = { model: "gpt-5.4-mini", messages: [{ role: "user", content: "When does the ferry leave?" }] };

describe("when the disk is full", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;
  let disk: SmallDisk;
  let upstream: AgentUpstream;
  let site: DocumentServer;

  before(async function () {
    if (process.env.MONGODB_URL) return skipTest(this, "only the embedded store has a disk of the test's own");
    if (process.getuid?.() !== 0) return skipTest(this, "only root can mount a small disk");
    disk = mountDisk(96);
    [upstream, site] = [await startAgentUpstream(), await startDocumentServer()];
    test = await startPlatform({
      services: "private",
      env: {
        DATA_DIR: disk.path,
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: upstream.url,
        FETCH_ALLOW_ORIGINS: site.origin,
        JOB_LEASE_MS: "2000",
        RECONCILE_EVERY_MS: "300",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
  });
  afterEach(async () => {
    disk?.free();
    if (test) await untilRoom();
  });
  after(async () => {
    await test?.close();
    await upstream?.close();
    site?.close();
    disk?.close();
  });

  const untilRoom = () =>
    pollUntil(async () => (await ingest("Accepted")).status === 201, { timeoutMs: 15_000, what: "room on the disk" });
  const ingest = (title: string, text = `About ${title}.`) => client.post("/rag/ingest", { content: text, title });
  /** Small writes may still fit into the space that the store's log has. */
  const fillDisk = async () => {
    disk.fill();
    expectFull(await ingest("Refused", "This is not kept. ".repeat(100_000)));
  };
  const expectFull = (answer: ApiResponse) => {
    expect([answer.status, answer.at("error.type"), answer.at("error.code")], answer.text).to.deep.equal([
      507,
      "server_error",
      "storage_full",
    ]);
    expect(answer.string("error.message")).to.include("full");
    expect(Number(answer.headers.get("retry-after"))).to.be.at.least(1);
  };
  const jobOf = async (accepted: ApiResponse) =>
    (await client.get(`/jobs/${accepted.string("jobId")}`)).string("status");

  it("refuses writes with 507, reads and deletes, says so in /readyz, and works again once there is room", async () => {
    const [ferry, bulky] = [await ingest("Ferry"), await ingest("Mountains", "Mountains are high. ".repeat(2_000))];
    expect([ferry.status, bulky.status]).to.deep.equal([201, 201]);
    await fillDisk();
    expectFull(await client.post("/agents", { name: "Clerk", model: paid.model, systemPrompt: "You order." }));
    expectFull(await client.post("/keys", { role: "member", subject: "late@test" }));
    const ready = await untilReady(client, 503);
    expect(ready.at("parts.store.status")).to.equal("down");
    expect(ready.string("parts.store.detail")).to.include("full");
    expect((await client.post("/rag/query", { query: "ferry" })).at("results[0].title")).to.equal("Ferry");
    expect((await client.delete(`/rag/documents/${bulky.string("documentId")}`)).status).to.equal(204);
    expect((await client.get("/rag/documents")).body).to.have.length(1);
    disk.free();
    await untilRoom();
    await untilReady(client, 200);
    const { body } = await client.get("/rag/documents");
    expect((body as { title: string }[]).map(({ title }) => title)).to.have.members(["Ferry", "Accepted"]);
  });

  it("calls no paid provider while calls cannot be recorded, and records each call made", async () => {
    upstream.play(() => ({ text: "At dawn." }));
    expect((await client.post("/ai/chat", paid)).status).to.equal(200);
    await fillDisk();
    // The first that is not recorded shows it; nothing of it is lost.
    await pollUntil(async () => (await client.post("/ai/chat", paid)).status === 507, { what: "the first refusal" });
    const { length: made } = upstream.calls;
    for (const path of ["/ai/chat", "/v1/chat/completions"]) {
      expectFull(await client.post(path, paid));
      expectFull(await client.post(path, { ...paid, stream: true }));
    }
    expectFull(await client.post("/v1/embeddings", { model: "text-embedding-3-small", input: "dawn" }));
    expect(upstream.calls.length, "calls of the provider").to.equal(made);
    expect((await client.post("/ai/chat", { messages: paid.messages })).status, "a model that is free").to.equal(200);

    disk.free();
    await untilRoom();
    expect((await client.post("/ai/chat", paid)).status).to.equal(200);
    const recorded = async () => {
      const { body } = await client.get("/usage?groupBy=model");
      return (body as { data: { model: string; requests: number }[] }).data.find(({ model }) => model === paid.model);
    };
    await pollUntil(async () => (await recorded())?.requests === made + 1, { what: "a record of each call" });
  });

  it("retries jobs until there is room, without a limit, and fails none of them", async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    upstream.play(async ({ turn }) => {
      await held;
      if (turn === 1) return { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "1 + 1" } }] };
      return { text: "Two." };
    });
    site.put("/held", () => held.then(() => ({ body: "Held by its server for a while." })));
    const agent = { name: "Clerk", model: paid.model, systemPrompt: "You add.", tools: [{ type: "calculator" }] };
    const { agentId } = (await client.post("/agents", agent)).body as { agentId: string };
    const run = await client.post(`/agents/${agentId}/run`, { input: "Add one." }, later);
    const document = await client.post("/rag/ingest", { url: `${site.origin}/held` }, later);
    await pollUntil(() => upstream.calls.length === 1 && site.hits("/held") === 1, { what: "the running jobs" });
    await fillDisk();
    letGo();
    const seen = new Map([run, document].map((job) => [job.string("jobId"), new Set<number>()]));
    await pollUntil(
      async () => {
        for (const [jobId, changes] of seen) {
          const job = await test.platform.store.jobs.findById(jobId);
          expect(["queued", "running"], `${job?.kind}: ${JSON.stringify(job?.error)}`).to.include(job?.status);
          changes.add(job?.updatedAt.getTime() ?? 0);
        }
        return [...seen.values()].every(({ size }) => size > 10); // more attempts than the failures that a job may have
      },
      { timeoutMs: 40_000, what: "further attempts" },
    );
    expect(upstream.calls.length, "calls of the provider").to.equal(1);
    disk.free();
    await pollUntil(async () => (await jobOf(run)) === "completed" && (await jobOf(document)) === "completed", {
      timeoutMs: 20_000,
      what: "the end of the jobs",
    });
    expect((await client.get(`/jobs/${run.string("jobId")}`)).at("result.output")).to.equal("Two.");
  });

  // The last one: it leaves room in the data file, which the others would then find.
  it("fills up with documents, and takes more once some are deleted", async () => {
    disk.fill({ butMiB: 8 });
    const content = "The ferry leaves at dawn, and returns late. ".repeat(5_000);
    const made: ApiResponse[] = [];
    const refused = await pollUntil(
      async () => {
        const body = { content, title: `Timetable ${made.length}` };
        const answer = await client.post("/rag/ingest", body, { headers: { prefer: "wait=3" } });
        if (answer.status < 300) made.push(answer);
        return answer.status < 300 ? null : answer;
      },
      { timeoutMs: 40_000, what: "a full disk" },
    );
    expectFull(refused);
    const [waiting, done] = [made.filter(({ status }) => status === 202), made.filter(({ status }) => status === 201)];
    for (const document of done) {
      expect((await client.delete(`/rag/documents/${document.string("documentId")}`)).status).to.equal(204);
    }
    await untilRoom();
    for (const accepted of waiting) {
      await pollUntil(async () => (await jobOf(accepted)) === "completed", { what: "a job that waited for room" });
    }
  });
});
