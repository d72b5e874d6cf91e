import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { MongoClient } from "mongodb";
import { hashEntry } from "../../src/agents/audit.ts";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import type { AuditEntry } from "../../src/store/audit-store.ts";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { blocksOf, type ClaudeUpstream, startClaudeUpstream, type WireBlock } from "../support/claude-upstream.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { cancelledWithinMs } from "../support/promised-times.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";

const later = { headers: { prefer: "respond-async" } };

describe("an agent's run", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let upstream: AgentUpstream;
  let claude: ClaudeUpstream;
  let site: ToolServer;
  let gate: Gate;
  let member: ApiClient;
  let agentId: string;
  const processes: HostProcess[] = [];
  before(async () => {
    [upstream, site] = [await startAgentUpstream(), await startToolServer()];
    claude = await startClaudeUpstream();
    gate = await startGate(Number(new URL(site.origin).port));
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: claude.origin,
        PROVIDER_MAX_ATTEMPTS: "1",
        FETCH_ALLOW_ORIGINS: gate.origin,
        JOB_LEASE_MS: "1000",
        RECONCILE_EVERY_MS: "300",
      },
    });
    member = makeClient({ url: test.url, key: test.keys.member });
    const config = { allowedHosts: [gate.host], methods: ["POST"] };
    const tools = [{ type: "http_request", config }, { type: "calculator" }];
    const agent = { name: "Clerk", model: "gpt-5.4-mini", systemPrompt: "You order.", tools };
    agentId = (await member.post("/agents", agent)).string("agentId");
  });
  const endWorkers = () => Promise.all(processes.splice(0).map((one) => one.kill()));
  after(async () => {
    await endWorkers();
    await test.close();
    await upstream.close();
    await claude.close();
    await gate.close();
    await site.close();
  });

  const startWorker = async (env: Record<string, string> = {}, onOutput?: (text: string) => void) => {
    const worker = await startProcess("workers/main.ts", { ...test.env, ...env }, onOutput);
    processes.push(worker);
    return worker;
  };
  /** The worker that the test before has left, or a new one: to start a process takes longer than most of what is tested. */
  const someWorker = async () => {
    const left = processes.find(({ child }) => child.exitCode === null && child.signalCode === null);
    return left ?? (await startWorker());
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
  const auditLogOf = (runId: string) => member.get(`/agents/${agentId}/runs/${runId}`);
  /** Orders, adds, answers; `hold` is waited for before the answer of a turn. */
  const play = (hold: Partial<Record<number, Promise<void>>> = {}) =>
    upstream.play(async ({ turn }) => {
      await hold[turn];
      if (turn === 1)
        return { text: "I order.", calls: [{ name: "http_request", arguments: { url: `${gate.origin}/order` } }] };
      if (turn === 2) return { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "1 + 1" } }] };
      return { text: "Ordered." };
    });
  const keysOf = (path: string) =>
    site.requests.filter((request) => request.path === path).map(({ headers }) => headers["idempotency-key"]);
  /** What came of a run whose first worker was killed: each answer recorded once, and the audit log whole. */
  const expectWhole = async ({ jobId, runId }: { jobId: string; runId: string }) => {
    const job = await ended(jobId);
    expect([job.at("status"), job.at("result.output"), job.at("result.steps")]).to.deep.equal([
      "completed",
      "Ordered.",
      3,
    ]);
    const auditLog = await auditLogOf(runId);
    expect([auditLog.at("integrity.verified"), auditLog.at("integrity.entries")]).to.deep.equal([true, 5]);
    expect(auditLog.at("steps")).to.have.length(3);
  };

  it("resumes when its worker is killed before the first answer", async () => {
    site.requests.length = 0;
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    const { promise, resolve } = Promise.withResolvers<void>();
    play({ 1: promise });
    const victim = await someWorker();
    const run = await submit();
    await pollUntil(() => upstream.calls.length === 1, { what: "the first call" });
    await victim.kill();
    resolve();
    await startWorker();
    await expectWhole(run);
    expect(keysOf("/order")).to.have.length(1);
  });

  it("gives a streamed chat each of its steps once, and its answer, when its worker is killed between them", async () => {
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    const { promise, resolve } = Promise.withResolvers<void>();
    play({ 2: promise });
    const victim = await someWorker();
    const body = { model: "agent:Clerk", messages: [{ role: "user", content: "Order one." }], stream: true };
    const { events } = await member.events("POST", "/v1/chat/completions", { body });
    const chunks = (async () => (await Array.fromAsync(events)).map(({ data }) => valueAt(data, "choices[0].delta")))();
    await pollUntil(() => upstream.calls.length === 2, { timeoutMs: 20_000, what: "the second call" });
    await victim.kill();
    resolve();
    await startWorker();
    const deltas = await chunks;
    const thought = deltas.map((delta) => valueAt(delta, "reasoning_content") ?? "").join("");
    expect(thought.split("\n").map((line) => line.split(" ")[0])).to.deep.equal([
      "I",
      "[http_request]",
      "I",
      "[calculator]",
      "",
    ]);
    expect(deltas.map((delta) => valueAt(delta, "content") ?? "").join("")).to.equal("Ordered.");
  });

  it("sends the reasoning of earlier turns back byte for byte when its worker is killed between them", async () => {
    const turns = [1, 2].map((turn): WireBlock[] => [
      { type: "thinking", thinking: `Überlegung ${turn}`, signature: `c2ln+/${turn}==` },
      { type: "tool_use", id: `toolu_${turn}`, name: "calculator", input: { expression: `${turn} + 1` } },
    ]);
    const { promise, resolve } = Promise.withResolvers<void>();
    claude.play(async ({ turn }) => {
      if (turn === 2) await promise;
      return { content: turns[turn - 1] ?? [{ type: "text", text: "Counted." }] };
    });
    const agent = {
      name: "Counter",
      model: "claude-opus-5-5",
      systemPrompt: "You count.",
      tools: [{ type: "calculator" }],
    };
    const counterId = (await member.post("/agents", agent)).string("agentId");
    const victim = await someWorker();
    const accepted = await member.post(`/agents/${counterId}/run`, { input: "Count." }, later);
    await pollUntil(() => claude.calls.length === 2, { timeoutMs: 20_000, what: "the second call" });
    await victim.kill();
    resolve();
    await startWorker();
    const job = await ended(accepted.string("jobId"));
    expect([job.at("status"), job.at("result.output")]).to.deep.equal(["completed", "Counted."]);
    const said = (claude.calls.at(-1)?.body.messages ?? []).filter(({ role }) => role === "assistant").map(blocksOf);
    expect(JSON.stringify(said)).to.equal(JSON.stringify(turns));
  });

  it("makes the tool call that was recorded as intended when its worker is killed before it was made", async () => {
    site.requests.length = 0;
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    play();
    gate.shut();
    const before = gate.opened();
    await endWorkers(); // one that has been at the gate keeps its connection
    const victim = await startWorker();
    const run = await submit();
    await pollUntil(() => gate.opened() > before, { what: "the tool's connection" });
    expect(site.requests, "the service has seen nothing").to.have.length(0);
    expect((await auditLogOf(run.runId)).at("integrity.entries"), "the intention is recorded").to.equal(1);
    await victim.kill();
    gate.open();
    await startWorker();
    await expectWhole(run);
    expect(keysOf("/order")).to.deep.equal([`${run.runId}-1-1`]);
    expect(
      upstream.calls.map(({ turn }) => turn),
      "the recorded answer is not paid again",
    ).to.deep.equal([1, 2, 3]);
  });

  it("repeats a tool call that was under way with its key, and asks for no recorded answer again", async () => {
    site.requests.length = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    site.on("/order", (_, response) => promise.then(() => void response.writeHead(200).end("ordered")));
    play();
    const victim = await someWorker();
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
    const victim = await someWorker();
    const run = await submit();
    await pollUntil(() => upstream.calls.length === 2, { what: "the second call" });
    await victim.kill();
    resolve();
    await startWorker();
    await expectWhole(run);
    expect(keysOf("/order")).to.have.length(1);
    expect(upstream.calls.map(({ turn }) => turn)).to.deep.equal([1, 2, 2, 3]);
  });

  for (const entries of [1, 2, 3, 4, 5]) {
    it(`is whole wherever it is cut: its worker killed as soon as ${entries} entries are there`, async () => {
      site.requests.length = 0;
      site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
      play();
      const victim = await someWorker();
      const run = await submit();
      await pollUntil(async () => Number((await auditLogOf(run.runId)).at("integrity.entries")) >= entries, {
        everyMs: 1,
        what: `${entries} entries`,
      });
      await victim.kill();
      await startWorker();
      await expectWhole(run);
      expect(new Set(keysOf("/order")), "each try of the order under one key").to.deep.equal(
        new Set([`${run.runId}-1-1`]),
      );
      expect(keysOf("/order").length).to.be.within(1, entries === 1 ? 2 : 1);
      const answers = upstream.calls.map(({ turn }) => turn);
      // Recorded answers are not asked for again: what was being asked when it was cut may be, once.
      expect(answers.length).to.be.within(3, 4);
      expect([...new Set(answers)]).to.deep.equal([1, 2, 3]);
    });
  }

  it("writes its audit log by inserts alone, according to the driver's command log", async () => {
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    play();
    await endWorkers();
    let log = "";
    const env = { MONGODB_LOG_COMMAND: "debug", MONGODB_LOG_PATH: "stdout", MONGODB_LOG_MAX_DOCUMENT_LENGTH: "300" };
    const worker = await startWorker(env, (text) => {
      log += text;
    });
    await expectWhole(await submit());
    await worker.kill();
    const started = [...log.matchAll(/Command started.*?command: '(.*?)'/gs)].map(([, command = ""]) => command);
    const onAuditLog = started.filter((command) => command.includes('"auditSteps"'));
    const names = new Set(onAuditLog.map((command) => /^\{"(\w+)"/.exec(command)?.[1]));
    // A busy machine may lose the lease: the next attempt then inserts an entry again, which is refused.
    const inserts = onAuditLog.filter((command) => command.startsWith('{"insert"'));
    const inserted = inserts.map((command) => /"documents":\[\{"_id":"([^"]+)"/.exec(command)?.[1]);
    expect(inserted).to.not.include(undefined);
    expect(new Set(inserted)).to.have.property("size", 5);
    expect([...names].sort()).to.deep.equal(["createIndexes", "find", "insert"]);
    expect(
      started.some((command) => command.includes('"agentRuns"')),
      "the log holds other writes",
    ).to.equal(true);
  });

  it("is cancelled at once in the middle of a tool call", async () => {
    site.requests.length = 0;
    site.on("/order", () => undefined); // never answers
    play();
    await someWorker();
    const { jobId, runId } = await submit();
    await pollUntil(() => site.requests.length === 1, { what: "the tool call" });
    const cancelledAt = performance.now();
    await member.post(`/jobs/${jobId}/cancel`);
    expect(await site.requests[0]?.ended).to.equal("left");
    expect((await ended(jobId)).at("status")).to.equal("cancelled");
    expect(performance.now() - cancelledAt).to.be.below(cancelledWithinMs);
    const auditLog = await auditLogOf(runId);
    expect([auditLog.at("status"), auditLog.at("integrity.verified")]).to.deep.equal(["cancelled", true]);
    expect(upstream.calls).to.have.length(1);
  });

  it("reports each way of tampering with its audit log in the database, and where", async () => {
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    play();
    await someWorker();
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
        const auditLog = await auditLogOf(runId);
        expect([auditLog.at("integrity.verified"), auditLog.at("integrity.breach.seq")], way).to.deep.equal([
          false,
          seq,
        ]);
        if (way !== "removed in the middle") continue; // the command is a process of its own, and takes its time
        const reported = await auditCommand(["verify", runId], test.env);
        expect(reported).to.deep.include({ code: 1 });
        expect(reported.stdout).to.contain(`${runId}: THE AUDIT LOG IS BROKEN at entry 1 of 4`);
      }
      await entries.deleteMany({ runId });
      await entries.insertMany(saved);
      const whole = await auditLogOf(runId);
      expect(whole.at("integrity.verified")).to.equal(true);
      const head = whole.string("integrity.head");
      expect(await auditCommand(["verify", runId, "--head", head], test.env)).to.deep.equal({
        code: 0,
        stdout: `${runId}: the audit log holds, 5 entries, head ${head}\n`,
        stderr: "",
      });
      const other = await auditCommand(["verify", runId, "--json", "--head", "0".repeat(64)], test.env);
      expect([other.code, JSON.parse(other.stdout).breach.seq], "a chain that was computed again").to.deep.equal([
        1, 4,
      ]);
      const unknown = await auditCommand(["verify", "run_01J00000000000000000000000"], test.env);
      expect([unknown.code, unknown.stderr]).to.deep.equal([
        2,
        "There is no such run run_01J00000000000000000000000.\n",
      ]);
      await db
        .collection<{ _id: string }>("agentRuns")
        .updateOne({ _id: runId }, { $set: { input: "Order a hundred." } });
      expect((await auditLogOf(runId)).at("integrity.breach.seq")).to.equal(0);
    } finally {
      await client.close();
      await services.close();
    }
  });
});

/** `npm run audit`, as its own process. */
function auditCommand(args: string[], env: Record<string, string>) {
  const script = fileURLToPath(new URL("../../scripts/audit.ts", import.meta.url));
  return new Promise<{ code: number | string; stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [script, ...args],
      { env: { ...process.env, ...env }, timeout: 20_000 },
      (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, stdout, stderr: stderr.replace(/^store: .*\n/, "") }),
    );
  });
}
