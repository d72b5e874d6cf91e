import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
import { removeUnlessPublished } from "../../src/rag/stray-chunks.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { makeProse } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Result = { content: string; documentId: string };

describe("versions of a document", () => {
  let web: DocumentServer;
  let platform: TestPlatform;
  let client: ApiClient;

  before(async () => {
    web = await startDocumentServer();
    platform = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: web.origin } });
    client = makeClient({ url: platform.url, key: platform.keys.member });
  });
  after(async () => {
    await platform.close();
    web.close();
  });

  const ingest = (path: string) => client.post("/rag/ingest", { url: web.origin + path });
  const find = async (query: string, more: object = {}) =>
    (await client.post("/rag/query", { query, ...more })).at("results") as Result[];

  /** More chunks than are written in one command, each telling which edition it is of. */
  const edition = (name: string) =>
    Array.from(
      { length: 300 },
      (_, page) => `## Page ${page}\n\nEdition ${name}. ${makeProse(18, `atlas ${name} ${page}`)}`,
    ).join("\n\n");

  it("keeps the document of a URL, and shows the new text instead of the old", async () => {
    web.put("/news", { body: "The harbour crane is red." });
    const first = await ingest("/news");
    web.put("/news", { body: "The harbour crane is blue." });
    const second = await ingest("/news#top");
    expect(second.string("documentId")).to.equal(first.string("documentId"));
    const found = await find("harbour crane", { documentIds: [first.string("documentId")] });
    expect(found.map(({ content }) => content)).to.deep.equal(["The harbour crane is blue."]);
    const document = await client.get(`/rag/documents/${first.string("documentId")}`);
    expect(document.at("title")).to.equal("The harbour crane is blue.");
  });

  it("shows each query one whole version while documents change", async function () {
    this.timeout(60_000);
    web.put("/atlas.md", { body: edition("A") });
    const first = await ingest("/atlas.md");
    expect(first.status, first.text).to.equal(201);
    expect(first.at("chunks")).to.be.above(256);
    const documentIds = [first.string("documentId")];
    let isOver = false;
    let queries = 0;
    const seen = new Set<string>();
    const watch = async (mode: string) => {
      while (!isOver) {
        const found = await find("atlas page degrees", { documentIds, mode, topK: 20 });
        const editions = new Set(found.map(({ content }) => /(?:Edition|atlas) ([AB])\b/.exec(content)?.[1] ?? "?"));
        expect([...editions], `${mode}, query ${queries}`).to.have.lengthOf(1);
        expect(found, `${mode}, query ${queries}`).to.have.lengthOf(20);
        for (const name of editions) seen.add(name);
        queries += 1;
      }
    };
    const change = async () => {
      try {
        for (const name of ["B", "A", "B"]) {
          web.put("/atlas.md", { body: edition(name) });
          expect((await ingest("/atlas.md")).status).to.equal(201);
        }
      } finally {
        isOver = true;
      }
    };
    await Promise.all([change(), watch("vector"), watch("lexical"), watch("hybrid")]);
    expect([...seen].sort()).to.deep.equal(["A", "B"]);
    expect(queries).to.be.above(20);
    const { store } = platform.platform;
    const tenantId = await tenantOf(platform);
    const documentId = first.string("documentId");
    const versions = await Promise.all(
      [1, 2, 3, 4].map((version) => store.chunks.count(tenantId, { documentId, version })),
    );
    expect(versions.slice(0, 3)).to.deep.equal([0, 0, 0]);
    expect(versions[3]).to.equal(first.at("chunks"));
  });

  it("is found although it changed while a query was at work", async () => {
    const page = `${web.origin}/timetable`;
    web.put("/timetable", { body: "The tram leaves at seven." });
    const first = await client.post("/rag/ingest", { url: page });
    const { documents } = platform.platform.store;
    const { headers } = documents;
    // Between what a query has found and the look at the documents that it is of.
    documents.headers = async (...args) => {
      documents.headers = headers;
      web.put("/timetable", { body: "The tram leaves at eight." });
      expect((await client.post("/rag/ingest", { url: page })).status).to.equal(201);
      return headers(...args);
    };
    const documentIds = [first.string("documentId")];
    const found = await find("tram leaves", { documentIds });
    expect(documents.headers, "the query has looked").to.equal(headers);
    expect(found.map(({ content }) => content)).to.deep.equal(["The tram leaves at eight."]);
  });

  it("leaves the former version as it is when a re-ingest fails", async () => {
    web.put("/wiki", { body: "The ferry leaves at nine." });
    const first = await ingest("/wiki");
    web.put("/wiki", { body: "", status: 404 });
    expect((await ingest("/wiki")).status).to.equal(422);
    const documentIds = [first.string("documentId")];
    expect(await find("ferry leaves", { documentIds })).to.have.lengthOf(1);
    const document = await client.get(`/rag/documents/${documentIds[0]}`);
    expect(document.body).to.include({ status: "indexed", chunks: 1 });
    expect(document.at("error.code")).to.equal("source_unreachable");
  });

  it("keeps the embeddings of unchanged chunks", async () => {
    const paragraphs = Array.from({ length: 20 }, (_, n) => `## Part ${n}\n\n${makeProse(15, `mill ${n}`)}`);
    web.put("/book.md", { body: paragraphs.join("\n\n") });
    await ingest("/book.md");
    const before = await embeddingCalls();
    expect(before).to.be.above(0);
    await ingest("/book.md");
    expect(await embeddingCalls()).to.equal(before);
  });

  it("forgets a document that is deleted while its job runs", async () => {
    const gate = Promise.withResolvers<void>();
    web.put("/slow", async () => {
      await gate.promise;
      return { body: "The secret of the slow document." };
    });
    const accepted = await client.post(
      "/rag/ingest",
      { url: `${web.origin}/slow` },
      { headers: { prefer: "respond-async" } },
    );
    const documentId = accepted.string("documentId");
    await pollUntil(() => web.hits("/slow") > 0);
    expect((await client.get(`/rag/documents/${documentId}`)).at("status")).to.equal("processing");
    expect((await client.delete(`/rag/documents/${documentId}`)).status).to.equal(204);
    gate.resolve();
    expect((await client.get(`/rag/documents/${documentId}`)).status).to.equal(404);
    await pollUntil(async () => (await client.get(accepted.string("statusUrl"))).at("status") === "cancelled");
    expect(await find("secret of the slow document", { documentIds: [documentId] })).to.deep.equal([]);
    const { chunks } = platform.platform.store;
    expect(await chunks.count(await tenantOf(platform), { documentId, version: 1 })).to.equal(0);
    web.put("/slow", { body: "Anew." });
    const again = await ingest("/slow");
    expect(again.string("documentId")).not.to.equal(documentId);
  });

  async function embeddingCalls(): Promise<number> {
    await platform.platform.gateway.flush();
    const usage = await client.get("/usage?groupBy=surface");
    const rows = usage.at("data") as { surface: string; requests: number }[];
    return rows.find(({ surface }) => surface === "ingest")?.requests ?? 0;
  }

  it("stays as it is when the attempt that has published it fails afterwards, and its source is gone", async () => {
    const admin = makeClient({ url: platform.url, key: platform.keys.admin });
    const rules = { ssn: { ingest: "block" } };
    expect((await admin.request("PUT", "/guards", { body: { rules } })).status).to.equal(200);
    const { sources } = platform.platform.store;
    const { remove } = sources;
    let failures = 0;
    sources.remove = async (...asked) => {
      await remove(...asked);
      failures += 1;
      if (failures === 1) throw new AppError("unavailable", "The answer of the store was lost.", { retryable: true });
    };
    try {
      const made = await client.post("/rag/ingest", { title: "Sluice", content: "The sluice opens at high tide." });
      expect([made.status, made.at("status")], made.text).to.deep.equal([201, "indexed"]);
      expect(failures, "attempts that have removed the source").to.be.above(0);
      const found = await find("sluice", { documentIds: [made.string("documentId")] });
      expect(found.map(({ content }) => content)).to.deep.equal(["The sluice opens at high tide."]);
    } finally {
      sources.remove = remove;
      await admin.request("PUT", "/guards", { body: { rules: {} } });
    }
  });

  it("is not published by what comes late of an attempt whose passages were removed", async () => {
    const { documents, chunks } = platform.platform.store;
    const [{ publish }, { remove }] = [documents, chunks];
    const late: unknown[] = [];
    let send: (() => Promise<unknown>) | undefined;
    documents.publish = async (...asked) => {
      documents.publish = publish;
      send = () => publish(...asked);
      throw new AppError("unavailable", "The store does not answer.", { retryable: true });
    };
    chunks.remove = async (...asked) => {
      await remove(...asked);
      if (send) late.push(await send());
      send = undefined;
    };
    try {
      const made = await client.post("/rag/ingest", { title: "Late", content: "The towpath floods in March." });
      expect([made.status, made.at("status")], made.text).to.deep.equal([201, "indexed"]);
      expect(late, "what the store did of the first attempt").to.deep.equal([null]);
      const found = await find("towpath", { documentIds: [made.string("documentId")] });
      expect(found.map(({ content }) => content)).to.deep.equal(["The towpath floods in March."]);
    } finally {
      chunks.remove = remove;
    }
  });

  it("is published although an attempt that began after it was given up before", async () => {
    const { documents } = platform.platform.store;
    const { publish } = documents;
    documents.publish = async (tenantId, documentId, made) => {
      documents.publish = publish;
      const later = await documents.beginVersion(tenantId, documentId); // of a worker that has lost the job, and does not know it yet
      await removeUnlessPublished(platform.platform, later ?? expect.fail("no later version"));
      return publish(tenantId, documentId, made);
    };
    const made = await client.post("/rag/ingest", {
      title: "Two attempts",
      content: "The lock keeper sleeps at noon.",
    });
    expect([made.status, made.at("status"), made.at("chunks")], made.text).to.deep.equal([201, "indexed", 1]);
    const found = await find("keeper", { documentIds: [made.string("documentId")] });
    expect(found.map(({ content }) => content)).to.deep.equal(["The lock keeper sleeps at noon."]);
  });
});
