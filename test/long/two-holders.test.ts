import { expect } from "chai";
import { makeClaims } from "../../src/jobs/claim.ts";
import { newId } from "../../src/lib/ids.ts";
import type { BackgroundResponse } from "../../src/store/response-store.ts";
import { Overtaken } from "../../src/store/store-errors.ts";
import { responsesBodySchema } from "../../src/surfaces/responses/request-schemas.ts";
import { beginResponse } from "../../src/surfaces/responses/response.ts";
import { openLog } from "../../src/surfaces/responses/stored/event-log.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const [endedPath, heldPath] = ["/two-holders/ended", "/two-holders/held"];
const page = (who: string) => Array.from({ length: 200 }, (_, n) => `Line ${n} is as the ${who} read it.`).join("\n");

const pieces = ["One ", "two ", "three."];
const failure = { type: "upstream_error", code: "provider_failed", message: "Not yet." } as const;

describe("a worker that comes back from a freeze longer than its lease", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;
  let site: DocumentServer;
  let upstream: FakeProvider;
  const workers: HostProcess[] = [];

  before(async () => {
    site = await startDocumentServer();
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        FETCH_ALLOW_ORIGINS: site.origin,
        JOB_LEASE_MS: "1000",
        RECONCILE_EVERY_MS: "300",
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: "small",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await test.close();
    site.close();
    await upstream.close();
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

  it("adds nothing to the events of a response, and does not end it, also in the job's last attempt", async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    for (const { promise: until } of gates) upstream.next({ pieces, hold: { afterPieces: 1, until } });
    const body = { model: "small", input: "Count.", background: true, stream: true };
    const { events: begun } = await client.events("POST", "/v1/responses", { body });
    const { store } = test.platform;
    const tenantId = await tenantOf(test);
    const [accepted] = await store.responses.unfinished({ before: new Date(Date.now() + 60_000), limit: 1 });
    const { _id: id, jobId } = accepted ?? expect.fail("it is not there");
    await begun.return(undefined);
    for (const worker of ["one", "two"]) {
      const { lease } = (await makeClaims(store.jobs, 60_000).claim(jobId, worker)) ?? expect.fail("the job is held");
      await makeClaims(store.jobs, 60_000).retry(lease, new Date(), failure);
    }
    const eventsOf = async () => {
      const records = await Array.fromAsync(store.responseEvents.read(tenantId, id, 0));
      return records.flatMap(({ events }) => JSON.parse(events) as { type: string; delta?: string }[]);
    };
    const deltasAre = (deltas: string[]) =>
      pollUntil(async () => String((await eventsOf()).flatMap(({ delta }) => delta ?? [])) === String(deltas), {
        timeoutMs: 30_000,
        what: `${deltas.length} deltas`,
      });
    const first = await startWorker();
    await deltasAre(["One "]);
    first.child.kill("SIGSTOP");
    gates[0]?.resolve(); // the answer is there when it continues
    const second = await startWorker();
    await deltasAre(["One ", "One "]);
    const recorded = await eventsOf();

    first.child.kill("SIGCONT");
    expect(await first.stop(), "exit code, after it did what it had to do").to.equal(0);
    expect(await eventsOf()).to.deep.equal(recorded);
    expect((await client.get(`/v1/responses/${id}`)).at("status")).to.equal("in_progress");
    gates[1]?.resolve();
    const ended = await pollUntil(
      async () => {
        const response = await client.get(`/v1/responses/${id}`);
        return response.at("status") === "in_progress" ? null : response;
      },
      { timeoutMs: 20_000, what: "the end of the response" },
    );
    expect(ended.at("status")).to.equal("completed");
    expect(ended.at("output[0].content[0].text")).to.equal(pieces.join(""));
    const all = await eventsOf();
    expect(all.slice(0, recorded.length)).to.deep.equal(recorded);
    expect(all.flatMap(({ delta }) => delta ?? [])).to.deep.equal(["One ", "One ", "two three."]);
    expect(await second.stop()).to.equal(0);
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
      reschedule: claims.reschedule(lease, new Date(), "awaiting"),
      suspend: claims.suspend(lease),
      release: claims.release(lease),
    };
    for (const [name, write] of Object.entries(writes)) expect(await write, name).to.equal(null);
    expect(await store.jobs.findById(jobId)).to.deep.equal(before);
    await claims.complete(second.lease, "in time", progress);
    expect((await store.jobs.findById(jobId))?.result).to.equal("in time");
  });

  it("is refused every event of a response, and its end, once the second worker has begun", async () => {
    const { store } = test.platform;
    const tenantId = await tenantOf(test);
    const body = responsesBodySchema.parse({ model: "small", input: "Count.", background: true, stream: true });
    const now = new Date();
    const record: BackgroundResponse = {
      ...{ _id: newId("response"), tenantId, jobId: newId("job"), isStreamed: true, isOpen: true },
      ...{ response: "{}", output: "[]", input: "[]", bytes: { response: 2, output: 2, input: 2 } },
      ...{
        chain: [],
        total: { items: 0, bytes: 0 },
        createdAt: now,
        updatedAt: now,
        expireAt: new Date(now.getTime() + 3_600_000),
      },
      caller: { keyId: "key", subject: "ann@test", role: "member", surface: "responses" },
    };
    const begun = beginResponse(body);
    const deps = { store, notify: () => undefined };
    const first = await openLog(deps, record, begun);
    await first.writer.begin();
    const second = await openLog(deps, record, begun);
    const delta = (text: string) => [
      {
        type: "response.output_text.delta" as const,
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        delta: text,
        logprobs: [],
      },
    ];
    await second.writer.begin();
    await second.writer.add(delta("second"));
    await first.writer.add(delta("first"));
    const end = { type: "response.completed" as const, response: { ...begun, status: "completed" as const } };
    const late = await first.writer.end(end, []).catch((error: unknown) => error);
    expect(late).to.be.instanceOf(Overtaken);
    await second.writer.end(end, []);
    const third = await openLog(deps, record, begun);
    for (const { writer } of [first, second, third]) writer.close();
    expect(third.end?.response.status).to.equal("completed");
    const records = await Array.fromAsync(store.responseEvents.read(tenantId, record._id, 0));
    const events = records.flatMap((one) => JSON.parse(one.events) as { delta?: string; sequence_number: number }[]);
    expect(events.flatMap((event) => event.delta ?? [])).to.deep.equal(["second"]);
    expect(events.map(({ sequence_number: number }) => number)).to.deep.equal(events.map((_, n) => n));
  });
});
