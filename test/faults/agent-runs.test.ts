import { expect } from "chai";
import { MongoClient } from "mongodb";
import { hashEntry } from "../../src/agents/audit.ts";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { makeLogger } from "../../src/logger.ts";
import type { AuditEntry } from "../../src/store/audit-store.ts";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";

const later = { headers: { prefer: "respond-async" } };

describe("an agent's run", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let upstream: AgentUpstream;
  let site: ToolServer;
  let member: ApiClient;
  let agentId: string;
  const processes: HostProcess[] = [];
  before(async () => {
    [upstream, site] = [await startAgentUpstream(), await startToolServer()];
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: upstream.url,
        PROVIDER_MAX_TRIES: "1",
        FETCH_ALLOW_ORIGINS: site.origin,
        JOB_LEASE_MS: "1000",
        RECONCILE_EVERY_MS: "300",
      },
    });
    member = makeClient({ url: test.url, key: test.keys.member });
    const config = { allowedHosts: [site.host], methods: ["POST"] };
    const tools = [{ type: "http_request", config }, { type: "calculator" }];
    const agent = { name: "Clerk", model: "gpt-5.4-mini", systemPrompt: "You order.", tools };
    agentId = (await member.post("/agents", agent)).string("agentId");
  });
  afterEach(() => Promise.all(processes.splice(0).map((one) => one.kill())));
  after(async () => {
    await test.close();
    await upstream.close();
    await site.close();
  });

  const startWorker = async () => {
    const worker = await startProcess("workers/main.ts", test.env);
    processes.push(worker);
    return worker;
  };
  const submit = async () => {
    const accepted = await member.post(`/agents/${agentId}/run`, { input: "Order one." }, later);
    expect(accepted.status).to.equal(202);
    return { jobId: accepted.string("jobId"), runId: accepted.string("runId") };
  };
  const ended = (jobId: string) =>
    pollUntil(
      async () => {
        const job = await member.get(`/jobs/${jobId}`);
        return ["completed", "failed", "cancelled"].includes(job.string("status")) ? job : undefined;
      },
      { timeoutMs: 30_000, what: "the job's end" },
    );
  const trailOf = (runId: string) => member.get(`/agents/${agentId}/runs/${runId}`);
  /** Orders, adds, answers; `hold` is waited for before the answer of a turn. */
  const play = (hold: Partial<Record<number, Promise<void>>> = {}) =>
    upstream.play(async ({ turn }) => {
      await hold[turn];
      if (turn === 1)
        return { text: "I order.", calls: [{ name: "http_request", arguments: { url: `${site.origin}/order` } }] };
      if (turn === 2) return { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "1 + 1" } }] };
      return { text: "Ordered." };
    });
  const keysOf = (path: string) =>
    site.requests.filter((request) => request.path === path).map(({ headers }) => headers["idempotency-key"]);
  /** What came of a run whose first worker was killed: each answer recorded once, and the trail whole. */
  const expectWhole = async ({ jobId, runId }: { jobId: string; runId: string }) => {
    const job = await ended(jobId);
    expect([job.at("status"), job.at("result.output"), job.at("result.steps")]).to.deep.equal([
      "completed",
      "Ordered.",
      3,
    ]);
    const trail = await trailOf(runId);
    expect([trail.at("integrity.verified"), trail.at("integrity.entries")]).to.deep.equal([true, 5]);
    expect(trail.at("steps")).to.have.length(3);
  };

  it("goes on when its worker is killed before the first answer", async () => {
    site.requests.length = 0;
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    const { promise, resolve } = Promise.withResolvers<void>();
    play({ 1: promise });
    const victim = await startWorker();
    const run = await submit();
    await pollUntil(() => upstream.calls.length === 1, { what: "the first call" });
    await victim.kill();
    resolve();
    await startWorker();
    await expectWhole(run);
    expect(keysOf("/order")).to.have.length(1);
  });

  it("repeats a tool call that was under way with its key, and asks for no recorded answer again", async () => {
    site.requests.length = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    site.on("/order", (_, response) => promise.then(() => void response.writeHead(200).end("ordered")));
    play();
    const victim = await startWorker();
    const run = await submit();
    await pollUntil(() => site.requests.length === 1, { what: "the tool call" });
    await victim.kill();
    resolve();
    await startWorker();
    await expectWhole(run);
    const keys = keysOf("/order");
    expect(keys).to.have.length(2);
    expect(new Set(keys).size).to.equal(1);
    expect(upstream.calls.map(({ turn }) => turn)).to.deep.equal([1, 2, 3]);
  });

  it("repeats nothing that was observed when its worker is killed before the next answer", async () => {
    site.requests.length = 0;
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    const { promise, resolve } = Promise.withResolvers<void>();
    play({ 2: promise });
    const victim = await startWorker();
    const run = await submit();
    await pollUntil(() => upstream.calls.length === 2, { what: "the second call" });
    await victim.kill();
    resolve();
    await startWorker();
    await expectWhole(run);
    expect(keysOf("/order")).to.have.length(1);
    expect(upstream.calls.map(({ turn }) => turn)).to.deep.equal([1, 2, 2, 3]);
  });

  it("is cancelled within two seconds in the middle of a tool call", async () => {
    site.requests.length = 0;
    site.on("/order", () => undefined); // never answers
    play();
    await startWorker();
    const { jobId, runId } = await submit();
    await pollUntil(() => site.requests.length === 1, { what: "the tool call" });
    const cancelledAt = performance.now();
    await member.post(`/jobs/${jobId}/cancel`);
    expect(await site.requests[0]?.ended).to.equal("left");
    expect((await ended(jobId)).at("status")).to.equal("cancelled");
    expect(performance.now() - cancelledAt).to.be.below(2_000);
    const trail = await trailOf(runId);
    expect([trail.at("status"), trail.at("integrity.verified")]).to.deep.equal(["cancelled", true]);
    expect(upstream.calls).to.have.length(1);
  });

  it("tells each way of tampering with its trail in the database, and where", async () => {
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    play();
    await startWorker();
    const run = await submit();
    await expectWhole(run);
    const { runId } = run;
    const logger = makeLogger({ level: "silent", name: "test" });
    const services = await ensureServices({
      dataDir: test.platform.config.dataDir,
      mongo: test.env.MONGODB_URL === undefined,
      redis: false,
      logger,
    });
    const client = new MongoClient(test.env.MONGODB_URL ?? services.mongoUrl ?? "");
    try {
      const db = client.db(test.platform.config.mongo.db);
      const entries = db.collection<AuditEntry>("auditSteps");
      const saved = await entries.find({ runId }).sort({ seq: 1 }).toArray();
      const [first, second, third] = saved;
      if (!first || !second || !third) throw new Error("the trail is too short");
      const without = ({ hash: _, ...entry }: AuditEntry) => entry;
      const forged = { ...without(second), content: { ...second.content, output: "forged" } } as AuditEntry; // its kind stays
      const ways: [string, number, AuditEntry[]][] = [
        ["changed", 1, saved.map((entry) => (entry === second ? { ...forged, hash: second.hash } : entry))],
        [
          "changed, with a new hash",
          2,
          saved.map((entry) => (entry === second ? { ...forged, hash: hashEntry(forged) } : entry)),
        ],
        ["removed in the middle", 1, saved.filter((entry) => entry !== second)],
        ["removed at the end", 4, saved.slice(0, -1)],
        [
          "swapped",
          1,
          saved.map((entry) =>
            entry === second
              ? { ...third, _id: second._id, seq: 1 }
              : entry === third
                ? { ...second, _id: third._id, seq: 2 }
                : entry,
          ),
        ],
        ["put in at the end", 5, [...saved, { ...third, _id: `${runId}:5`, seq: 5 }]],
      ];
      for (const [way, seq, tampered] of ways) {
        await entries.deleteMany({ runId });
        await entries.insertMany(tampered);
        const trail = await trailOf(runId);
        expect([trail.at("integrity.verified"), trail.at("integrity.breach.seq")], way).to.deep.equal([false, seq]);
      }
      await entries.deleteMany({ runId });
      await entries.insertMany(saved);
      expect((await trailOf(runId)).at("integrity.verified")).to.equal(true);
      await db
        .collection<{ _id: string }>("agentRuns")
        .updateOne({ _id: runId }, { $set: { input: "Order a hundred." } });
      expect((await trailOf(runId)).at("integrity.breach.seq")).to.equal(0);
    } finally {
      await client.close();
      await services.close();
    }
  });
});
