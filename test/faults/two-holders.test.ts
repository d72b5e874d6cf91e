import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const path = "/two-holders";
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

  it("writes nothing: job, document and chunks stay those of who took over", async () => {
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    let asked = 0;
    site.put(path, () => {
      asked += 1;
      return asked === 1 ? held.then(() => ({ body: page("first") })) : { body: page("second") };
    });
    const first = await startWorker();
    const accepted = await client.post(
      "/rag/ingest",
      { url: `${site.origin}${path}` },
      { headers: { prefer: "respond-async" } },
    );
    const [jobId, documentId] = [accepted.string("jobId"), accepted.string("documentId")];
    await pollUntil(() => asked === 1, { what: "the job at work" });
    first.child.kill("SIGSTOP");
    letGo(); // the answer is there when the first one goes on
    const second = await startWorker();
    const job = await pollUntil(
      async () => {
        const seen = await jobOf(jobId);
        return seen.status === "completed" ? seen : null;
      },
      { timeoutMs: 30_000, what: "the completion by the second worker" },
    );
    expect(job).to.include({ attempts: 2 });
    expect(await second.stop()).to.equal(0);
    const document = (await client.get(`/rag/documents/${documentId}`)).body;

    first.child.kill("SIGCONT");
    expect(await first.stop(), "exit code, after it did what it had to do").to.equal(0);
    expect(await jobOf(jobId)).to.deep.equal(job);
    expect((await client.get(`/rag/documents/${documentId}`)).body).to.deep.equal(document);
    const { chunks } = job.result as { chunks: number };
    expect(chunks).to.be.at.least(2);
    const found = await client.post("/rag/query", { query: "line", topK: 100, documentIds: [documentId] });
    const contents = (found.at("results") as { content: string }[]).map(({ content }) => content);
    expect(contents).to.have.lengthOf(chunks);
    for (const content of contents) expect(content).to.include("second").and.not.include("first");
    const everyVersion = { documentId, version: { $gt: 0 } as unknown as number }; // any number, in the store's language
    expect(await test.platform.store.chunks.count(await tenantOf(test), everyVersion)).to.equal(chunks);
  });
});
