import { expect } from "chai";
import { makePdf } from "../support/documents.ts";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const pages = 200;
/** An embedding that does not come: the worker is killed while it waits for it. */
const held: Behaviour = { firstByteMs: 100_000 };
/** A page of prose that no other page has. */
const pageText = (page: number) =>
  Array.from(
    { length: 30 },
    (_, line) => `Page ${page}, line ${line}: the ferry ${page * 121 + line} leaves at dawn.`,
  ).join(" ");

describe("kill -9 of a worker in the middle of a 200-page ingestion", function () {
  this.timeout(120_000);
  let fake: FakeProvider;
  let test: TestPlatform;
  let tenantId: string;
  let pdf: Buffer;

  before(async () => {
    pdf = await makePdf(Array.from({ length: pages }, (_, page) => pageText(page)));
    fake = await startFakeProvider();
    const embedding = { EDGE_BASE_URL: fake.url, EDGE_MODEL: "small", EDGE_EMBEDDING_MODEL: "embed-test" };
    test = await startPlatform({
      workers: false,
      env: { ...embedding, JOB_LEASE_MS: "1500", RECONCILE_EVERY_MS: "300" },
    });
    tenantId = await test.platform.tenancy.ensureTenant("first");
  });
  after(async () => {
    await test.close();
    await fake.close();
  });

  const submit = async (name: string) => {
    const form = new FormData();
    form.set("file", new File([new Uint8Array(pdf)], name));
    const headers = { authorization: `Bearer ${test.keys.owner}`, prefer: "respond-async" };
    const accepted = await fetch(`${test.url}/rag/ingest`, { method: "POST", headers, body: form });
    expect(accepted.status).to.equal(202);
    return (await accepted.json()) as { jobId: string; documentId: string };
  };
  const jobOf = (jobId: string) => test.platform.jobs.get(tenantId, jobId);
  const untilEnded = (jobId: string) =>
    pollUntil(async () => ((await jobOf(jobId)).finishedAt ? jobOf(jobId) : null), {
      timeoutMs: 60_000,
      everyMs: 50,
      what: "the job's end",
    });
  /** The ids of a hundred passages that a query finds in a document. */
  const found = async (documentId: string) => {
    const answer = await fetch(`${test.url}/rag/query`, {
      method: "POST",
      headers: { authorization: `Bearer ${test.keys.owner}`, "content-type": "application/json" },
      body: JSON.stringify({ query: "ferry leaves at dawn", topK: 100, mode: "vector", documentIds: [documentId] }),
    });
    const { results } = (await answer.json()) as { results: { chunkId: string }[] };
    return results.map(({ chunkId }) => chunkId);
  };
  const allChunks = (documentId: string) =>
    test.platform.store.chunks.count(tenantId, { documentId, version: { $gt: 0 } as unknown as number });
  type Moment = { answered: Behaviour[]; isThere(ids: { jobId: string; documentId: string }): Promise<boolean> };
  const moments: Record<string, Moment> = {
    "when it begins": { answered: [], isThere: async ({ jobId }) => (await jobOf(jobId)).status === "running" },
    "when some chunks are written": {
      answered: [{}],
      isThere: async ({ documentId }) => (await allChunks(documentId)) > 0,
    },
  };

  for (const [title, { answered, isThere }] of Object.entries(moments)) {
    it(`${title}, ends indexed with exactly the chunks of an undisturbed run`, async () => {
      fake.next(...answered);
      fake.setDefault(held);
      const victim = await startProcess("workers/main.ts", test.env);
      const killed = await submit("killed.pdf");
      try {
        await pollUntil(() => isThere(killed), { timeoutMs: 60_000, what: "the moment to kill" });
      } finally {
        await victim.kill();
      }
      expect((await jobOf(killed.jobId)).status, "after the kill").to.equal("running");
      fake.reset();
      const successor = await startProcess("workers/main.ts", test.env);
      try {
        const ended = await untilEnded(killed.jobId);
        expect(ended).to.include({ status: "completed", attempts: 2 });
        const undisturbed = await submit("undisturbed.pdf");
        const reference = await untilEnded(undisturbed.jobId);
        expect(reference).to.include({ status: "completed", attempts: 1 });
        const { chunks: wanted } = reference.result as { chunks: number };
        expect(wanted).to.be.at.least(pages);
        expect((ended.result as { chunks: number }).chunks).to.equal(wanted);
        for (const { documentId } of [killed, undisturbed]) {
          expect(await allChunks(documentId), "rows in the store").to.equal(wanted);
          const ids = await found(documentId);
          expect(ids).to.have.lengthOf(100);
          expect(new Set(ids).size, "each passage once").to.equal(100);
        }
      } finally {
        expect(await successor.stop(), "exit code after SIGTERM").to.equal(0);
      }
    });
  }
});
