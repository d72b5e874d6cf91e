import { expect } from "chai";
import { CHECK_QUEUED_AFTER_MS } from "../../src/jobs/claim.ts";
import { newId } from "../../src/lib/ids.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Call = { key: string; title: string; body: Record<string, string>; prefer: string };

describe("kill -9 of the API", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let site: DocumentServer;
  let client: ApiClient;
  const processes: HostProcess[] = [];

  before(async () => {
    site = await startDocumentServer();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: site.origin, RECONCILE_EVERY_MS: "300" } });
    client = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    await test.close();
    site.close();
  });

  const startApi = async () => {
    const api = await startProcess("api/server.ts", test.env);
    processes.push(api);
    return { api, client: makeClient({ url: String(api.ready.url), key: test.keys.owner }) };
  };
  const send = (to: ApiClient, { key, body, prefer }: Call) =>
    to.post("/rag/ingest", body, { headers: { "idempotency-key": key, prefer } });
  const indexedTitles = async () => {
    const { body } = await client.get("/rag/documents?limit=200");
    return (body as { title: string }[]).map(({ title }) => title);
  };
  const untilAllEnded = async () => {
    const tenantId = await tenantOf(test);
    const { jobs } = test.platform.store;
    await pollUntil(async () => (await jobs.countOpen(tenantId, 1_000)) === 0, {
      timeoutMs: 2 * CHECK_QUEUED_AFTER_MS,
      everyMs: 50,
      what: "the end of all jobs",
    });
  };

  it("in the middle of 24 calls: repeats with the same keys give one job and one document each", async () => {
    const first = await startApi();
    const second = await startApi();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    site.put("/held", () => held.then(() => ({ body: "Held by its server." })));
    const calls: Call[] = Array.from({ length: 24 }, (_, n) => {
      const title = `Report ${n}`;
      return { key: `call ${n}`, title, body: { content: `This is ${title}.`, title }, prefer: "respond-async" };
    });
    const waiting: Call = {
      key: "waits",
      title: "Held",
      body: { url: `${site.origin}/held`, title: "Held" },
      prefer: "wait=60",
    };
    const unanswered = send(first.client, waiting).catch(() => null);
    await pollUntil(() => site.hits("/held") === 1, { what: "the job that its caller waits for" });
    const answers: (ApiResponse | null)[] = [];
    let killing: Promise<void> | undefined;
    await Promise.all(
      calls.map(async (call, index) => {
        answers[index] = await send(first.client, call).catch(() => null);
        killing ??= first.api.kill(); // at the first answer; the others are on their way
      }),
    );
    await killing;
    expect(await unanswered, "what the killed process was still waiting for").to.equal(null);
    expect(answers.filter((answer) => answer === null).length, "calls that were cut").to.be.at.least(1);

    const all = [...calls, waiting];
    const repeats = await Promise.all(
      all.map((call) =>
        pollUntil(
          async () => {
            const answer = await send(second.client, call);
            if (answer.status === 409) expect(answer.at("error.code")).to.equal("idempotency_in_progress");
            return answer.status === 409 ? null : answer;
          },
          { timeoutMs: 20_000, everyMs: 200, what: `the answer to the repeat of ${call.key}` },
        ),
      ),
    );
    letGo();
    for (const [index, repeat] of repeats.entries()) {
      expect(repeat.status).to.equal(202);
      const before = answers[index];
      if (before) expect(repeat.text, "the first answer").to.equal(before.text);
    }
    await untilAllEnded();
    expect((await indexedTitles()).sort()).to.deep.equal(all.map(({ title }) => title).sort());
    const held202 = repeats.at(-1)?.string("jobId");
    expect((await client.get(`/jobs/${held202}`)).body).to.include({ status: "completed", attempts: 1 });
    expect(site.hits("/held"), "the repeat gets the job of the first call").to.equal(1);
  });

  it("between a job's record and its queue: the job still runs", async () => {
    const accepted = await client.post("/rag/ingest", { content: "A document.", title: "To copy" });
    expect(accepted.status).to.equal(201);
    const tenantId = await tenantOf(test);
    const newest = (await client.get("/jobs?limit=1")).string("data[0].jobId");
    const model = await test.platform.jobs.get(tenantId, newest);
    const { startedAt: _s, finishedAt: _f, result: _r, expireAt: _e, ...fields } = model;
    const jobId = newId("job");
    const now = new Date();
    await test.platform.store.jobs.insert({
      ...fields,
      _id: jobId,
      payload: { ...model.payload, jobId },
      status: "queued",
      attempts: 0,
      createdAt: now,
      updatedAt: now,
      checkAt: now, // as when it has waited for a while
    });
    const job = await pollUntil(
      async () => {
        const record = await test.platform.jobs.get(tenantId, jobId);
        return record.status === "completed" ? record : null;
      },
      { timeoutMs: 10_000, everyMs: 50, what: "the orphan's end" },
    );
    expect(job).to.include({ attempts: 1 });
  });
});
