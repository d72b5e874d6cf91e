import { expect } from "chai";
import { sweepWorks } from "../../src/jobs/work.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { rejectedWithinMs } from "../support/promised-times.ts";
import { hostPid } from "../support/service-pids.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const storeTimeoutMs = 1_000;
const later = { headers: { prefer: "respond-async" } };

describe("when the store is unavailable", function () {
  this.timeout(40_000);
  let test: TestPlatform;
  let client: ApiClient;
  let dataDir: string;

  before(async function () {
    if (process.env.MONGODB_URL) return skipTest(this, "only the embedded store can be frozen");
    test = await startPlatform({
      services: "private",
      env: { STORE_TIMEOUT_MS: String(storeTimeoutMs), JOB_LEASE_MS: "2000", RECONCILE_EVERY_MS: "300" },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
    dataDir = test.platform.config.dataDir;
    const ready = await client.post("/rag/ingest", { content: "The ferry leaves at dawn.", title: "Ferry" });
    expect(ready.status).to.equal(201);
  });
  after(() => test?.close());

  const timed = async (answering: Promise<ApiResponse>) => {
    const from = performance.now();
    const answer = await answering;
    return { answer, tookMs: performance.now() - from };
  };
  const expectAway = (answer: ApiResponse) => {
    expect(answer.status).to.equal(503);
    expect(Number(answer.headers.get("retry-after"))).to.be.at.least(1);
    expect(answer.at("error.code")).to.equal("unavailable");
  };
  const untilBack = () =>
    pollUntil(async () => (await client.get("/rag/documents")).status === 200, {
      timeoutMs: 15_000,
      what: "the store's return",
    });
  const listed = async (status: string) => {
    const { body } = await client.get(`/rag/documents?status=${status}&limit=200`);
    return (body as { title: string }[]).map(({ title }) => title);
  };

  it("answers 503 in time while it hangs, and works again when it continues, with nothing half-written", async () => {
    const pid = await hostPid(dataDir);
    const titles = Array.from({ length: 40 }, (_, n) => `Timetable ${n}`);
    // Some are in the middle of their writes when the store stops, the others come after.
    const ingest = (title: string) => timed(client.post("/rag/ingest", { content: `About ${title}.`, title }, later));
    const running = titles.slice(0, 30).map(ingest);
    await Promise.race(running);
    process.kill(pid, "SIGSTOP");
    let answers: Awaited<(typeof running)[number]>[];
    try {
      const asked = [client.get("/rag/documents"), client.post("/rag/query", { query: "dawn" }), client.get("/jobs")];
      const away = await Promise.all([...asked.map(timed), ...titles.slice(30).map(ingest)]);
      answers = await Promise.all(running);
      for (const { answer } of away) expectAway(answer);
      answers.push(...away.slice(asked.length));
      for (const { tookMs } of [...away, ...answers]) expect(tookMs).to.be.lessThan(rejectedWithinMs);
    } finally {
      process.kill(pid, "SIGCONT");
    }
    await untilBack();
    for (const { answer } of answers) if (answer.status !== 202) expectAway(answer);
    const accepted = titles.filter((_, index) => answers[index]?.answer.status === 202).sort();
    const tenantId = await tenantOf(test);
    await pollUntil(async () => (await test.platform.store.jobs.countOpen(tenantId, 1_000)) === 0, {
      timeoutMs: 20_000,
      what: "the end of all jobs",
    });
    expect((await listed("indexed")).sort()).to.deep.equal(["Ferry", ...accepted].sort());
    await sweepWorks(test.platform.jobs, test.platform.works, 0); // it would come by itself, after a while
    expect([...(await listed("queued")), ...(await listed("processing"))], "left in between").to.deep.equal([]);
    expect((await client.post("/rag/query", { query: "dawn" })).at("results[0].title")).to.equal("Ferry");
  });

  it("answers 503 or waits while its host is killed, and works again by itself", async () => {
    const before = await listed("indexed");
    const pid = await hostPid(dataDir);
    const ingest = () => timed(client.post("/rag/ingest", { content: "Found.", title: "New" }, later));
    const isAccepted = ({ answer, tookMs }: Awaited<ReturnType<typeof ingest>>) => {
      expect(tookMs).to.be.lessThan(rejectedWithinMs);
      if (answer.status !== 202) expectAway(answer);
      return answer.status === 202;
    };
    process.kill(pid, "SIGKILL");
    // Many at once: some find a connection that is about to be closed, others one that is.
    const accepted = (await Promise.all(Array.from({ length: 20 }, ingest))).filter(isAccepted).length;
    await pollUntil(async () => isAccepted(await ingest()), { timeoutMs: 15_000, what: "the next host" });
    expect(await hostPid(dataDir)).to.not.equal(pid);
    const all = [...before, ...Array.from({ length: accepted + 1 }, () => "New")].sort();
    await pollUntil(async () => (await listed("indexed")).length >= all.length, {
      timeoutMs: 15_000,
      what: "the documents that were accepted",
    });
    expect((await listed("indexed")).sort()).to.deep.equal(all);
  });
});
