import { expect } from "chai";
import { type ApiClient, type ApiEvent, makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const text = (n: number) => ({
  title: `doc ${n}`,
  content: `Document number ${n} speaks of leases and queues. `.repeat(20),
});

async function collect(events: AsyncGenerator<ApiEvent>): Promise<ApiEvent[]> {
  const all: ApiEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe("jobs over HTTP", () => {
  let platform: TestPlatform;
  let member: ApiClient;
  before(async () => {
    platform = await startPlatform();
    member = makeClient({ url: platform.url, key: platform.keys.member });
  });
  after(() => platform.close());

  const submit = async (n: number) => {
    const accepted = await member.post("/rag/ingest", text(n), { headers: { prefer: "respond-async" } });
    expect(accepted.status).to.equal(202);
    return accepted;
  };
  const ended = (jobId: string) =>
    pollUntil(async () => {
      const job = await member.get(`/jobs/${jobId}`);
      return ["completed", "failed", "cancelled"].includes(job.string("status")) ? job : undefined;
    });

  it("respond-async answers 202 at once, with the URL of the job", async () => {
    const accepted = await submit(1);
    const jobId = accepted.string("jobId");
    expect(accepted.headers.get("location")).to.equal(`/jobs/${jobId}`);
    expect(accepted.headers.get("preference-applied")).to.equal("respond-async");
    expect(Number(accepted.headers.get("retry-after"))).to.be.above(0);
    expect(accepted.at("kind")).to.equal("ingestion");
    expect(accepted.at("documentId")).to.match(/^doc_/);
    const job = await ended(jobId);
    expect(job.at("status")).to.equal("completed");
    expect(job.at("result")).to.deep.include({ documentId: accepted.at("documentId"), status: "indexed" });
    expect(job.at("attempts")).to.equal(1);
    expect(Date.parse(job.string("finishedAt"))).to.be.at.least(Date.parse(job.string("createdAt")));
  });

  it("shows its subject and its owner", async () => {
    const accepted = await submit(31);
    const listed = await member.get("/jobs?kind=ingestion&limit=1");
    expect(listed.at("data[0]")).to.deep.include({
      jobId: accepted.at("jobId"),
      about: { documentId: accepted.at("documentId"), collection: "default" },
      title: "doc 31",
      startedBy: "member@test",
    });
    await ended(accepted.string("jobId"));
  });

  it("are followed all together, by their own tenant alone", async () => {
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    const leave = new AbortController();
    const open = (client: ApiClient) => client.events("GET", "/jobs/events", { signal: leave.signal });
    const [own, others] = await Promise.all([open(member), open(stranger)]);
    const foreign = others.events.next().catch(() => "nothing");
    const accepted = await submit(32);
    const seen: unknown[] = [];
    for await (const { event, data } of own.events) {
      expect(event).to.equal("job");
      if (valueAt(data, "jobId") !== accepted.at("jobId")) continue;
      seen.push(valueAt(data, "title"), valueAt(data, "status"));
      if (valueAt(data, "status") === "completed") break;
    }
    expect(seen.slice(0, 1).concat(seen.at(-1))).to.deep.equal(["doc 32", "completed"]);
    const between = await stranger.post("/rag/ingest", text(33), { headers: { prefer: "respond-async" } });
    expect(valueAt(await foreign, "value.data.jobId")).to.equal(between.at("jobId"));
    leave.abort();
  });

  it("without a preference the call answers when the job has ended", async () => {
    const { status, headers, at } = await member.post("/rag/ingest", text(2));
    expect([status, at("status")]).to.deep.equal([201, "indexed"]);
    expect(headers.get("preference-applied")).to.equal(null);
  });

  it("wait= is applied, and the response says so", async () => {
    const { status, headers } = await member.post("/rag/ingest", text(3), { headers: { prefer: "wait=20" } });
    expect(status).to.equal(201);
    expect(headers.get("preference-applied")).to.equal("wait=20");
  });

  it("a job that fails in time is answered with its error", async () => {
    const body = { url: "http://127.0.0.1:1/x" };
    const { status, at } = await member.post("/rag/ingest", body);
    expect(status).to.be.within(400, 422);
    expect(at("error.code")).to.be.oneOf(["source_refused", "source_unreachable"]);
  });

  it("lists jobs newest first, by kind and state, page by page", async () => {
    const ids: string[] = [];
    for (let n = 10; n < 15; n += 1) ids.push((await submit(n)).string("jobId"));
    for (const id of ids) await ended(id);
    const seen: unknown[] = [];
    let cursor = "";
    do {
      const page = await member.get(
        `/jobs?limit=2&kind=ingestion&status=completed${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      );
      for (let n = 0; page.at(`data[${n}]`); n += 1) {
        seen.push(page.at(`data[${n}].jobId`));
        expect(page.at(`data[${n}]`), "what came of it is read job by job").not.to.have.property("result");
      }
      cursor = page.at("nextCursor") === null ? "" : page.string("nextCursor");
    } while (cursor !== "");
    expect(seen.slice(0, 5)).to.deep.equal([...ids].reverse());
    expect(new Set(seen).size).to.equal(seen.length);
    expect((await member.get("/jobs?status=awaiting")).at("data")).to.deep.equal([]);
  });

  it("a foreign cursor is a 400", async () => {
    for (const cursor of ["x", "%00", "e30", "job_", "a".repeat(512)]) {
      expect((await member.get(`/jobs?cursor=${cursor}`)).status, cursor).to.equal(400);
    }
  });

  it("follows a job to its end by events, and resumes after the last one received", async () => {
    const jobId = (await submit(20)).string("jobId");
    const stream = await member.events("GET", `/jobs/${jobId}/events`);
    expect(stream.headers.get("content-type")).to.match(/^text\/event-stream/);
    const all = await collect(stream.events);
    const last = all.at(-1);
    expect(last?.event).to.equal("end");
    expect(last?.data).to.deep.include({ jobId, status: "completed" });
    const ids = all.map(({ id }) => Number(id));
    expect(ids, "ids rise").to.deep.equal([...new Set(ids)].sort((a, b) => a - b));
    const rest = await member.events("GET", `/jobs/${jobId}/events`, {
      headers: { "last-event-id": String(ids.at(-2) ?? 0) },
    });
    expect((await collect(rest.events)).map(({ id }) => Number(id))).to.deep.equal(ids.slice(-1));
  });

  it("events of a job that does not exist are a 404, not a stream", async () => {
    const { status, at } = await member.get("/jobs/job_01J00000000000000000000000/events");
    expect([status, at("error.code")]).to.deep.equal([404, "not_found"]);
  });

  it("a job that has ended cannot be cancelled", async () => {
    const jobId = (await submit(30)).string("jobId");
    await ended(jobId);
    const { status, at } = await member.post(`/jobs/${jobId}/cancel`);
    expect([status, at("error.code")]).to.deep.equal([409, "wrong_state"]);
  });
});

describe("jobs over HTTP without workers", () => {
  let platform: TestPlatform;
  let member: ApiClient;
  before(async () => {
    platform = await startPlatform({ workers: false });
    member = makeClient({ url: platform.url, key: platform.keys.member });
  });
  after(() => platform.close());

  it("when the wait is over the answer is 202 and the job continues", async () => {
    const { status, headers, at } = await member.post("/rag/ingest", text(1), { headers: { prefer: "wait=1" } });
    expect([status, at("status")]).to.deep.equal([202, "queued"]);
    expect(headers.get("preference-applied")).to.equal("wait=1");
  });

  it("a client that leaves while it waits gets the accepted job by its key, and no second one", async () => {
    const headers = { "idempotency-key": "left", prefer: "wait=60" };
    const controller = new AbortController();
    const jobIds = async () => {
      const { at } = await member.get("/jobs?limit=200");
      return (at("data") as { jobId: string }[]).map(({ jobId }) => jobId);
    };
    const before = await jobIds();
    const waiting = member.post("/rag/ingest", text(2), { headers, signal: controller.signal });
    const made = await pollUntil(async () => (await jobIds()).find((jobId) => !before.includes(jobId)));
    controller.abort();
    await waiting.catch(() => undefined);
    const repeat = await pollUntil(async () => {
      const answer = await member.post("/rag/ingest", text(2), { headers });
      return answer.status === 409 ? undefined : answer;
    });
    expect([repeat.status, repeat.at("jobId")]).to.deep.equal([202, made]);
    expect(repeat.headers.get("idempotent-replayed")).to.equal("true");
  });

  it("a queued job is cancelled at once, and the waiting call gets the cancellation", async () => {
    const accepted = await member.post("/rag/ingest", text(3), { headers: { prefer: "respond-async" } });
    const cancelled = await member.post(`/jobs/${accepted.string("jobId")}/cancel`);
    expect([cancelled.status, cancelled.at("status")]).to.deep.equal([200, "cancelled"]);
  });

  it("is degraded without workers, and says so", async () => {
    const { status, at } = await member.get("/readyz");
    expect([status, at("status"), at("parts.workers.status")]).to.deep.equal([200, "degraded", "down"]);
    expect([at("parts.store.status"), at("parts.redis.status")]).to.deep.equal(["up", "up"]);
    expect((await member.get("/healthz")).body).to.deep.equal({ status: "ok" });
  });
});
