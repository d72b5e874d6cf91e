import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { makeScriptedJobs } from "../support/scripted-queue.ts";
import { redisPid } from "../support/service-pids.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const later = { headers: { prefer: "respond-async" } };
const graceMs = 1_000;

describe("a worker process that ends while it runs a job", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;
  let site: DocumentServer;
  const processes: HostProcess[] = [];
  const jobs = makeScriptedJobs();

  before(async () => {
    site = await startDocumentServer();
    test = await startPlatform({
      services: "private",
      workers: false,
      extra: [jobs.work],
      env: {
        FETCH_ALLOW_ORIGINS: site.origin,
        JOB_LEASE_MS: "1000",
        RECONCILE_EVERY_MS: "300",
        SHUTDOWN_GRACE_MS: String(graceMs),
      },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
  });
  afterEach(() => Promise.all(processes.splice(0).map((one) => one.kill())));
  after(async () => {
    await test.close();
    site.close();
  });

  const startWorker = async (env: Record<string, string> = {}) => {
    const worker = await startProcess("workers/main.ts", { ...test.env, ...env });
    processes.push(worker);
    return worker;
  };
  /** A job in the hands of a worker, which waits for the answer of the document's server until `letGo`. */
  const startHeldJob = async (path: string) => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const document = { body: `What is served at ${path}.` };
    site.put(path, () => held.then(() => document));
    const accepted = await client.post("/rag/ingest", { url: `${site.origin}${path}`, title: path }, later);
    expect(accepted.status).to.equal(202);
    await pollUntil(() => site.hits(path) === 1, { what: "the job at work" });
    return { jobId: accepted.string("jobId"), letGo };
  };
  const jobOf = async (jobId: string) => (await client.get(`/jobs/${jobId}`)).body as Record<string, unknown>;
  const completed = (jobId: string) =>
    pollUntil(
      async () => {
        const job = await jobOf(jobId);
        expect(job.status).to.not.be.oneOf(["failed", "cancelled"]);
        return job.status === "completed" ? job : null;
      },
      { timeoutMs: 30_000, what: "the job's completion" },
    );
  const expectOneDocument = async (title: string) => {
    const { body } = await client.get("/rag/documents?limit=200");
    const documents = (body as { title: string; chunks: number; documentId: string }[]).filter(
      (document) => document.title === title,
    );
    expect(documents).to.have.lengthOf(1);
    const found = await client.post("/rag/query", { query: "served", documentIds: [documents[0]?.documentId] });
    expect(found.at("results")).to.have.lengthOf(documents[0]?.chunks ?? 0);
  };

  it("by kill -9: another takes the job within 30 s, and it completes at its second attempt", async () => {
    const victim = await startWorker();
    const { jobId, letGo } = await startHeldJob("/killed");
    const successor = await startWorker();
    await victim.kill();
    await pollUntil(() => site.hits("/killed") === 2, { timeoutMs: 30_000, what: "the second attempt" });
    expect(await jobOf(jobId)).to.include({ status: "running", attempts: 2 });
    letGo();
    expect(await completed(jobId)).to.include({ attempts: 2 });
    await expectOneDocument("/killed");
    expect(await successor.stop()).to.equal(0);
  });

  it("by SIGTERM, with a job longer than its grace: the job is given back, the process ends with code 0", async () => {
    const stopped = await startWorker();
    const { jobId, letGo } = await startHeldJob("/given-back");
    expect(await stopped.stop()).to.equal(0);
    expect(await jobOf(jobId)).to.include({ status: "queued", attempts: 0 });
    letGo();
    const successor = await startWorker();
    expect(await completed(jobId)).to.include({ attempts: 1 });
    await expectOneDocument("/given-back");
    expect(await successor.stop()).to.equal(0);
  });

  it("by SIGTERM, while Redis hangs: it still ends, and another takes the job", async function () {
    if (process.env.REDIS_URL) return skipTest(this, "the Redis that was given is not ours to stop");
    const stopped = await startWorker();
    const { jobId, letGo } = await startHeldJob("/redis-hangs");
    const redis = await redisPid(test);
    process.kill(redis, "SIGSTOP");
    try {
      expect(await stopped.stop(), "exit code, before Redis continues").to.equal(3);
    } finally {
      process.kill(redis, "SIGCONT");
    }
    letGo();
    const successor = await startWorker();
    await completed(jobId);
    await expectOneDocument("/redis-hangs");
    expect(await successor.stop()).to.equal(0);
  });

  it("by SIGTERM, with a job within its grace: the job finishes, no other starts", async () => {
    const stopped = await startWorker({ SHUTDOWN_GRACE_MS: "20000" });
    const { jobId, letGo } = await startHeldJob("/finished");
    const ending = stopped.stop();
    const next = await client.post("/rag/ingest", { content: "After the end.", title: "after" }, later);
    letGo();
    expect(await ending).to.equal(0);
    expect(await jobOf(jobId)).to.include({ status: "completed", attempts: 1 });
    await expectOneDocument("/finished");
    const successor = await startWorker();
    await completed(next.string("jobId"));
    expect(await successor.stop()).to.equal(0);
  });

  it("by the job itself: after two workers it crashes a process of its own, and fails; its neighbour continues", async () => {
    const { store, tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant("first");
    const [poison, bystander] = [
      await jobs.submit(test.platform, tenantId, async () => undefined),
      await jobs.submit(test.platform, tenantId, async () => undefined),
    ];
    // It was lost as often as the poisonous one will be, because it ran beside it.
    await store.jobs.change({ jobId: bystander._id, from: ["queued"] }, { $set: { attempts: 2 } });
    const env = { ...test.env, HARMLESS: bystander._id };
    let ended = 0;
    const untilOver = async () => {
      for (;;) {
        const worker = await startProcess("test/support/poison-worker.ts", env);
        processes.push(worker);
        const gone = once(worker.child, "exit").then(() => "gone");
        const failed = pollUntil(async () => (await jobOf(poison._id)).status === "failed", {
          timeoutMs: 40_000,
          what: "the end",
        });
        failed.catch(() => undefined); // of a worker that is gone
        if ((await Promise.race([gone, failed])) !== "gone") return worker;
        ended += 1;
      }
    };
    const last = await untilOver();
    expect(ended, "workers that ended").to.equal(2);
    const failed = await jobOf(poison._id);
    expect(failed.error).to.deep.include({
      code: "internal",
      message: "The job ended every worker process that ran it, at last one that it had for itself.",
    });
    expect((await completed(bystander._id)).result).to.deep.equal({ alone: true });
    expect(await last.stop()).to.equal(0);
  });

  it("several times, with many jobs: they do not wait for processes of their own", async () => {
    const { store, tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant("first");
    const lost = await Promise.all([1, 2, 3].map(() => jobs.submit(test.platform, tenantId, async () => undefined)));
    const ids = lost.map(({ _id }) => _id);
    for (const jobId of ids) await store.jobs.change({ jobId, from: ["queued"] }, { $set: { attempts: 2 } });
    const folder = await mkdtemp(join(tmpdir(), "switchyard-meet-"));
    const worker = await startProcess("test/support/poison-worker.ts", {
      ...test.env,
      HARMLESS: ids.join(","),
      MEET_IN: folder,
    });
    processes.push(worker);
    const results = await Promise.all(ids.map(async (id) => (await completed(id)).result));
    expect(results).to.have.deep.members([{ alone: true }, { alone: true }, { alone: false }]);
    expect(await worker.stop()).to.equal(0);
    await rm(folder, { recursive: true });
  });
});
