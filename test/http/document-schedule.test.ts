import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const HOUR_MS = 3_600_000;

describe("a document whose URL is read again by itself", () => {
  let server: Server;
  let origin: string;
  let test: TestPlatform;
  let client: ApiClient;
  let page: string | undefined = "The ferry leaves at eight.";
  let reads = 0;

  before(async () => {
    server = createServer((_request, response) => {
      reads += 1;
      response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/plain" });
      response.end(page);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: origin, RECONCILE_EVERY_MS: "100" } });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    server.closeAllConnections();
    server.close();
  });

  const ingest = async (path: string, more: object = { refreshEveryHours: 24 }) =>
    (await client.post("/rag/ingest", { url: `${origin}${path}`, ...more })).string("documentId");
  const view = (id: string) => client.get(`/rag/documents/${id}`);
  /** The clock of the document is put forward; resolves when its job has ended. */
  const comeDue = async (id: string) => {
    const before = (await view(id)).at("jobId");
    const set = { refreshAt: new Date(Date.now() - 1_000) };
    await test.platform.store.documents.describeOne(await tenantOf(test), id, { set, unset: [] });
    const jobId = await pollUntil(
      async () => {
        const now = await view(id);
        return now.at("jobId") === before ? null : now.string("jobId");
      },
      { what: "the refresh" },
    );
    // The document names its job a moment before the job is there.
    await pollUntil(
      async () => ["completed", "failed"].includes(String((await client.get(`/jobs/${jobId}`)).at("status"))),
      { what: "the end of the refresh" },
    );
  };
  const hoursUntilNext = async (id: string) =>
    (Date.parse((await view(id)).string("refreshAt")) - Date.now()) / HOUR_MS;

  it("is read when its time has come, once, and again after its interval", async () => {
    const id = await ingest("/ferry");
    expect(await hoursUntilNext(id)).to.be.within(21, 24);
    page = "The ferry leaves at nine.";
    reads = 0;
    await comeDue(id);
    expect(reads).to.equal(1);
    expect((await client.post("/rag/query", { query: "ferry" })).at("results[0].content")).to.equal(page);
    expect(await hoursUntilNext(id)).to.be.within(21, 24);
    const jobs = (await client.get("/jobs?kind=ingestion")).at("data") as { startedBy?: string }[];
    expect(jobs.map(({ startedBy }) => startedBy)).to.include("schedule");
  });

  it("shows why a refresh failed, keeps its text, and stops after five failures in a row", async () => {
    page = "The ferry leaves at ten.";
    const id = await ingest("/pier");
    page = undefined;
    for (let failures = 1; failures <= 5; failures += 1) {
      await comeDue(id);
      const now = await view(id);
      expect([now.at("status"), now.at("error.code")]).to.deep.equal(["indexed", "source_unreachable"]);
    }
    const set = { refreshAt: new Date(Date.now() - 1_000) };
    await test.platform.store.documents.describeOne(await tenantOf(test), id, { set, unset: [] });
    await pollUntil(async () => (await view(id)).at("refreshAt") === undefined, { what: "the end of the schedule" });
    expect((await view(id)).body).to.include({ refreshEveryHours: 24, status: "indexed" });
    page = "The ferry leaves at noon.";
    await client.request("PATCH", `/rag/documents/${id}`, { body: { refreshEveryHours: 2 } });
    expect(await hoursUntilNext(id)).to.be.within(1.7, 2);
    await comeDue(id);
    expect((await view(id)).at("error")).to.equal(undefined);
  });

  it("is changed and ended by PATCH, and by another source", async () => {
    page = "The ferry is laid up.";
    const id = await ingest("/slip", {});
    expect((await view(id)).body).to.not.have.any.keys("refreshEveryHours", "refreshAt");
    const patch = (body: object) => client.request("PATCH", `/rag/documents/${id}`, { body });
    expect((await patch({ refreshEveryHours: 1 })).body).to.include({ refreshEveryHours: 1 });
    expect((await patch({ refreshEveryHours: null })).body).to.not.have.any.keys("refreshEveryHours", "refreshAt");
    for (const refreshEveryHours of [0, 0.5, 721, "daily"]) {
      const refused = await patch({ refreshEveryHours });
      expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "refreshEveryHours"]);
    }
    await patch({ refreshEveryHours: 1 });
    await client.post("/rag/ingest", { documentId: id, content: "The ferry is sold." });
    expect((await view(id)).body).to.not.have.any.keys("refreshEveryHours", "refreshAt");
    const ofText = [
      await patch({ refreshEveryHours: 1 }),
      await client.post("/rag/ingest", { content: "No address.", refreshEveryHours: 1 }),
    ];
    for (const refused of ofText)
      expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "refreshEveryHours"]);
  });
});
