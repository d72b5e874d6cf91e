import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("the refresh of a document", () => {
  let server: Server;
  let origin: string;
  let platform: TestPlatform;
  let client: ApiClient;
  /** What the server has, and the statuses that it has answered. */
  let page = { body: "The buoy is red.", etag: '"1"' };
  let statuses: number[] = [];

  before(async () => {
    server = createServer((request, response) => {
      const isSame = request.headers["if-none-match"] === page.etag;
      statuses.push(isSame ? 304 : 200);
      response.writeHead(isSame ? 304 : 200, { "content-type": "text/plain", etag: page.etag });
      response.end(isSame ? undefined : page.body);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    platform = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: origin } });
    client = makeClient({ url: platform.url, key: platform.keys.member });
  });
  after(async () => {
    await platform.close();
    server.closeAllConnections();
    server.close();
  });

  it("reads the URL again only if its server says that it has changed", async () => {
    const made = await client.post("/rag/ingest", { url: `${origin}/buoy` });
    const id = made.string("documentId");
    const path = `/rag/documents/${id}`;
    statuses = [];
    const first = await client.post(`${path}/refresh`, {});
    expect(first.body).to.deep.equal({ documentId: id, chunks: 1, status: "indexed", warnings: [], unchanged: true });
    page = { body: "The buoy is green.", etag: '"2"' };
    const second = await client.post(`${path}/refresh`, {});
    expect(second.body).to.deep.equal({ documentId: id, chunks: 1, status: "indexed", warnings: [] });
    expect((await client.post(`${path}/refresh`, {})).at("unchanged")).to.equal(true);
    expect(statuses).to.deep.equal([304, 200, 304]);
    const found = await client.post("/rag/query", { query: "buoy" });
    expect(found.at("results[0].content")).to.equal("The buoy is green.");
    expect((await client.get(path)).at("status")).to.equal("indexed");
    statuses = [];
    await client.post("/rag/ingest", { url: `${origin}/buoy` });
    expect(statuses, "an ingest reads it whole").to.deep.equal([200]);
  });

  it("is refused for a document of no URL, and does not exist for others", async () => {
    const id = (await client.post("/rag/ingest", { content: "The buoy has no address." })).string("documentId");
    expect((await client.post(`/rag/documents/${id}/refresh`, {})).status).to.equal(409);
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    expect((await stranger.post(`/rag/documents/${id}/refresh`, {})).status).to.equal(404);
  });
});
