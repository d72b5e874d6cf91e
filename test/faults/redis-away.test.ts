import { expect } from "chai";
import { isRedisUnavailable } from "../../src/store/redis/redis.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { rejectedWithinMs } from "../support/promised-times.ts";
import { redisPid } from "../support/service-pids.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const later = { headers: { prefer: "respond-async" } };

describe("when Redis is unavailable", function () {
  this.timeout(40_000);
  let test: TestPlatform;
  let client: ApiClient;
  let site: DocumentServer;

  before(async function () {
    if (process.env.REDIS_URL) return skipTest(this, "only the embedded Redis can be killed");
    site = await startDocumentServer();
    test = await startPlatform({
      services: "private",
      env: { FETCH_ALLOW_ORIGINS: site.origin, JOB_LEASE_MS: "2000", RECONCILE_EVERY_MS: "300" },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
    const ready = await client.post("/rag/ingest", { content: "The ferry leaves at dawn.", title: "Ferry" });
    expect(ready.status).to.equal(201);
  });
  after(async () => {
    await test?.close();
    site?.close();
  });

  const ended = (jobId: string) =>
    pollUntil(
      async () => {
        const { body } = await client.get(`/jobs/${jobId}`);
        const job = body as { status: string; attempts: number };
        return job.status === "completed" || job.status === "failed" ? job : null;
      },
      { timeoutMs: 20_000, what: "the job's end" },
    );
  /** Chat and queries need no Redis: they are answered. */
  const expectAnswers = async () => {
    const chat = client.post("/ai/chat", { messages: [{ role: "user", content: "When does the ferry leave?" }] });
    const query = client.post("/rag/query", { query: "ferry" });
    expect((await chat).status).to.equal(200);
    expect((await query).at("results[0].title")).to.equal("Ferry");
  };
  const submit = async (title: string) => {
    const from = performance.now();
    const answer = await client.post("/rag/ingest", { content: `About ${title}.`, title }, later);
    expect(performance.now() - from).to.be.lessThan(rejectedWithinMs);
    if (answer.status !== 202) {
      expect(answer.status).to.equal(503);
      expect(Number(answer.headers.get("retry-after"))).to.be.at.least(1);
    }
    return answer;
  };

  it("refuses jobs with 503 between its death and its return, and completes what it had accepted", async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    site.put("/held", () => held.then(() => ({ body: "Held by its server for a while." })));
    const running = await client.post("/rag/ingest", { url: `${site.origin}/held` }, later);
    await pollUntil(() => site.hits("/held") === 1, { what: "the running job" });
    const before = await Promise.all([submit("before 0"), submit("before 1"), submit("before 2")]);

    const { producer } = test.platform.redis;
    const accepted = [running, ...before];
    let tries = 0;
    await pollUntil(
      async () => {
        const closed = new Promise((resolve) => producer.once("close", resolve)); // an error may come before it
        process.kill(await redisPid(test), "SIGKILL");
        await closed;
        const [command, first] = [producer.get("any").catch(isRedisUnavailable), submit(`try ${tries++}`)]; // before it is back
        expect(await command, "a command without a connection").to.equal(true);
        const answer = await first;
        if (answer.status === 202) accepted.push(answer); // Redis was back before the submission came to it
        return answer.status === 503;
      },
      { timeoutMs: 20_000, what: "a submission that is refused" },
    );
    const back = await pollUntil(
      async () => {
        const answer = await submit(`try ${tries++}`);
        await expectAnswers();
        return answer.status === 202 ? answer : null;
      },
      { timeoutMs: 20_000, what: "the return of Redis" },
    );
    accepted.push(back);
    letGo();
    for (const { body } of accepted) {
      expect(await ended((body as { jobId: string }).jobId)).to.include({ status: "completed", attempts: 1 });
    }
    const { body } = await client.get("/rag/documents?limit=200");
    expect(body, "documents of what was accepted, and of nothing that was refused").to.have.length(1 + accepted.length);
  });

  it("keeps a run that is to start another one then, and starts that once", async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    site.put("/first", () => held.then(() => ({ body: "Done." })));
    const create = async (name: string, steps: object[]) =>
      (await client.post("/workflows", { name, steps })).string("workflowId");
    const inner = await create("Inner", [{ type: "set", id: "n", values: { n: 1 } }]);
    const outer = await create("Outer", [
      { type: "webhook", url: `${site.origin}/first`, method: "GET" },
      { type: "workflow", id: "sub", workflowId: inner },
    ]);
    const started = await client.post(`/workflows/${outer}/execute`, {});
    await pollUntil(() => site.hits("/first") === 1, { what: "the first step" });
    const pid = await redisPid(test);
    process.kill(pid, "SIGSTOP");
    const run = () => client.get(`/workflows/${outer}/runs/${started.string("runId")}`);
    try {
      letGo();
      await pollUntil(async () => /"id":"sub"/.test((await run()).text), { timeoutMs: 20_000, what: "the refusal" });
    } finally {
      process.kill(pid, "SIGCONT");
    }
    expect((await ended(started.string("jobId"))).status, (await run()).text).to.equal("completed");
    expect((await run()).at("steps[1].attempts")).to.equal(1);
    const children = await client.get(`/jobs?parentJobId=${started.string("jobId")}`);
    expect((children.at("data") as { status: string }[]).map(({ status }) => status)).to.deep.equal(["completed"]);
  });

  it("refuses jobs in time while it hangs, and accepts them when it continues", async () => {
    const pid = await redisPid(test);
    process.kill(pid, "SIGSTOP");
    try {
      const command = test.platform.redis.producer.get("any").catch(isRedisUnavailable);
      const order: string[] = [];
      const refused = submit("while it hangs").then(({ status }) => order.push(`refused with ${status}`));
      await Promise.all([refused, expectAnswers().then(() => order.push("answered"))]);
      expect(order, "what needs no Redis does not wait for it").to.deep.equal(["answered", "refused with 503"]);
      expect(await command, "a command that times out").to.equal(true);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    const back = await pollUntil(
      async () => {
        const answer = await submit("after it went on");
        return answer.status === 202 ? answer : null;
      },
      { timeoutMs: 20_000, what: "the return of Redis" },
    );
    expect(await ended(back.string("jobId"))).to.include({ status: "completed", attempts: 1 });
    const { body } = await client.get("/rag/documents?limit=200");
    expect((body as { title: string }[]).map(({ title }) => title)).to.not.include("while it hangs");
  });
});
