import { expect } from "chai";
import { makeClaims } from "../../src/jobs/claim.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const [endedPath, heldPath] = ["/two-holders/ended", "/two-holders/held"];
const page = (who: string) => Array.from({ length: 200 }, (_, n) => `Line ${n} is as the ${who} read it.`).join("\n");

describe("a worker that comes back from a freeze longer than its lease", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;
  let site: DocumentServer;
  const workers: HostProcess[] = [];

  before(async () => {
    site = await startDocumentServer();
    test = await startPlatform({
      workers: false,
      env: { FETCH_ALLOW_ORIGINS: site.origin, JOB_LEASE_MS: "1000", RECONCILE_EVERY_MS: "300" },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await test.close();
    site.close();
  });

  const startWorker = async () => {
    const worker = await startProcess("workers/main.ts", test.env);
    workers.push(worker);
    return worker;
  };
  const jobOf = async (jobId: string) => (await client.get(`/jobs/${jobId}`)).body as Record<string, unknown>;

  /** A page that each of two workers asks for once; `release[n]` answers the worker that asked as number n. */
  const servePage = (path: string) => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let asked = 0;
    site.put(path, async () => {
      const at = asked;
      asked += 1;
      await gates[at]?.promise;
      return { body: page(at === 0 ? "first" : "second") };
    });
    return { asked: () => asked, release: gates.map(({ resolve }) => resolve) };
  };
  const accept = async (path: string) => {
    const headers = { prefer: "respond-async" };
    const accepted = await client.post("/rag/ingest", { url: `${site.origin}${path}` }, { headers });
    return { jobId: accepted.string("jobId"), documentId: accepted.string("documentId") };
  };
  const completionOf = (jobId: string) =>
    pollUntil(
      async () => {
        const seen = await jobOf(jobId);
        return seen.status === "completed" ? seen : null;
      },
      { timeoutMs: 30_000, what: "the completion by the second worker" },
    );
  const expectSecondIn = async (documentId: string, { result }: Record<string, unknown>) => {
    const { chunks } = result as { chunks: number };
    expect(chunks).to.be.at.least(2);
    const found = await client.post("/rag/query", { query: "line", topK: 100, documentIds: [documentId] });
    const results = found.at("results") as { content: string; chunkIds: string[] }[];
    expect(results.flatMap(({ chunkIds }) => chunkIds)).to.have.lengthOf(chunks);
    for (const { content } of results) expect(content).to.include("second").and.not.include("first");
    const everyVersion = { documentId, version: { $gt: 0 } as unknown as number }; // any number, in the store's language
    expect(await test.platform.store.chunks.count(await tenantOf(test), everyVersion)).to.equal(chunks);
  };

  it("writes nothing, whether the second worker has finished or is still running", async () => {
    const [endedPage, heldPage] = [servePage(endedPath), servePage(heldPath)];
    const first = await startWorker();
    const [ended, held] = [await accept(endedPath), await accept(heldPath)];
    await pollUntil(() => endedPage.asked() === 1 && heldPage.asked() === 1, { what: "both jobs at work" });
    first.child.kill("SIGSTOP");
    // The answers are there when the first one continues.
    for (const { release } of [endedPage, heldPage]) release[0]?.();
    endedPage.release[1]?.();
    const second = await startWorker();
    const job = await completionOf(ended.jobId);
    expect(job).to.include({ attempts: 2 });
    const document = (await client.get(`/rag/documents/${ended.documentId}`)).body;
    await pollUntil(() => heldPage.asked() === 2, { timeoutMs: 30_000, what: "the other job at work again" });

    first.child.kill("SIGCONT");
    expect(await first.stop(), "exit code, after it did what it had to do").to.equal(0);
    expect(await jobOf(ended.jobId)).to.deep.equal(job);
    expect((await client.get(`/rag/documents/${ended.documentId}`)).body).to.deep.equal(document);
    expect(await jobOf(held.jobId)).to.include({ status: "running" });
    expect(
      (await test.platform.store.jobs.findById(held.jobId))?.overtaken,
      "reports of the first, which lives",
    ).to.equal(1);
    heldPage.release[1]?.();
    const externalJob = await completionOf(held.jobId);
    expect(await second.stop()).to.equal(0);
    await expectSecondIn(ended.documentId, job);
    await expectSecondIn(held.documentId, externalJob);
  });

  it("is refused each kind of write while the second worker is running", async () => {
    const { jobId } = await accept("/two-holders/claimed");
    const { store } = test.platform;
    const first = await makeClaims(store.jobs, 0).claim(jobId, "first");
    const claims = makeClaims(store.jobs, 60_000);
    const second = await claims.claim(jobId, "second");
    if (!first || !second) return expect.fail("both were to hold the job, one after the other");
    const before = await store.jobs.findById(jobId);
    const { lease } = first;
    const progress = { stage: "late", done: 1, total: 2 };
    const error = { type: "server_error", code: "internal", message: "Late." } as const;
    const writes = {
      heartbeat: claims.heartbeat(lease),
      progress: claims.progress(lease, progress),
      step: claims.step(lease, { late: true }),
      complete: claims.complete(lease, "late", progress),
      fail: claims.fail(lease, error),
      cancelled: claims.cancelled(lease),
      retry: claims.retry(lease, new Date(), error),
      reschedule: claims.reschedule(lease, new Date()),
      suspend: claims.suspend(lease),
      release: claims.release(lease),
    };
    for (const [name, write] of Object.entries(writes)) expect(await write, name).to.equal(null);
    expect(await store.jobs.findById(jobId)).to.deep.equal(before);
    expect((await claims.complete(second.lease, "in time", progress))?.result).to.equal("in time");
  });
});
