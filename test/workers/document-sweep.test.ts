import { expect } from "chai";
import { sweepWorks } from "../../src/jobs/work.ts";
import { newId } from "../../src/lib/ids.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

/** No worker runs here: what one would leave behind by dying is made by hand, and the sweep is asked to look at once. */
describe("sweep of documents", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;

  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
    tenantId = await tenantOf(test);
  });
  after(() => test.close());

  const submit = async (content: string) => {
    const accepted = await client.post("/rag/ingest", { content }, { headers: { prefer: "respond-async" } });
    return { documentId: accepted.string("documentId"), jobId: accepted.string("jobId") };
  };
  const index = ({ documentId, jobId }: { documentId: string; jobId: string }) =>
    test.platform.rag.work.run(workContext(test, { tenantId, recordId: documentId, jobId, isLastAttempt: true }));
  const sweep = (olderThanMs: number) => sweepWorks(test.platform.jobs, test.platform.works, olderThanMs);
  const stateOf = async (documentId: string) => (await client.get(`/rag/documents/${documentId}`)).at("status");
  const chunksOf = (documentId: string, version: number) =>
    test.platform.store.chunks.count(tenantId, { documentId, version });

  it("ends a document whose job was cancelled in the queue", async () => {
    const { documentId, jobId } = await submit("never indexed");
    await client.post(`/jobs/${jobId}/cancel`);
    await pollUntil(async () => {
      await sweep(0);
      return (await stateOf(documentId)) === "failed";
    });
    expect((await client.get(`/rag/documents/${documentId}`)).at("error.code")).to.equal("cancelled");
  });

  it("removes a document whose call was refused, or was cut and repeated", async () => {
    const { store } = test.platform;
    const refused = await submit("known to no client");
    const record = await store.jobs.find(tenantId, refused.jobId);
    if (!record) throw new Error("there is no job");
    const error = { type: "server_error", code: "unavailable", message: "away" } as const;
    await store.jobs.reject({ ...record, status: "failed", error }, "queued");
    const repeat = await submit("the repeat of a call that was cut");
    const repeated = await store.documents.get(tenantId, repeat.documentId);
    if (!repeated) throw new Error("there is no document");
    const cut = { ...repeated, _id: newId("document") };
    await store.documents.insert(cut);
    const neverSubmitted = { ...repeated, _id: newId("document"), jobId: newId("job") };
    await store.documents.insert(neverSubmitted);
    await sweep(-1_000);
    expect((await client.get(`/rag/documents/${refused.documentId}`)).status).to.equal(404);
    expect(await store.sources.read(tenantId, refused.documentId)).to.equal(null);
    for (const { _id } of [cut, neverSubmitted]) {
      expect((await client.get(`/rag/documents/${_id}`)).status).to.equal(404);
    }
    expect(await stateOf(repeat.documentId)).to.equal("queued");
    expect((await client.get(`/jobs/${repeat.jobId}`)).at("status")).to.equal("queued");
  });

  it("leaves waiting and indexed documents alone", async () => {
    const waiting = await submit("waits its turn");
    const indexed = await submit("is there");
    await index(indexed);
    await client.post(`/jobs/${indexed.jobId}/cancel`);
    await sweep(-1_000);
    expect(await stateOf(waiting.documentId)).to.equal("queued");
    expect(await stateOf(indexed.documentId)).to.equal("indexed");
    expect(await chunksOf(indexed.documentId, 1)).to.equal(1);
  });

  it("finishes a deletion that was cut off after its first step", async () => {
    const { documentId, jobId } = await submit("half deleted");
    await index({ documentId, jobId });
    await client.post(`/jobs/${jobId}/cancel`);
    const { store } = test.platform;
    await store.documents.beginDelete(tenantId, documentId);
    expect((await client.get(`/rag/documents/${documentId}`)).status).to.equal(404);
    expect(await chunksOf(documentId, 1)).to.equal(1);
    await sweep(-1_000);
    expect(await chunksOf(documentId, 1)).to.equal(0);
    expect(await store.sources.read(tenantId, documentId)).to.equal(null);
  });

  it("gives the same chunks when a job's work is done twice", async () => {
    const ids = await submit("# Twice\n\nThe same text, the same chunks.");
    const first = await index(ids);
    const second = await index(ids);
    expect(second).to.deep.equal(first);
    expect(await chunksOf(ids.documentId, 1)).to.equal(0);
    expect(await chunksOf(ids.documentId, 2)).to.equal(1);
  });
});
