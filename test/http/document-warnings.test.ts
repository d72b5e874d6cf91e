import { expect } from "chai";
import OpenAI, { toFile } from "openai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { makeScannedPdf } from "../support/documents.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Warning = { code: string; message: string; pages?: number[] };

describe("the account of a document", () => {
  let web: DocumentServer;
  let platform: TestPlatform;
  let client: ApiClient;
  let scanned: Buffer;
  let whole: Buffer;

  before(async () => {
    web = await startDocumentServer();
    platform = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: web.origin } });
    client = makeClient({ url: platform.url, key: platform.keys.member });
    scanned = await makeScannedPdf(["The first page speaks of anchors.", null, "The last page speaks of ropes."]);
    whole = await makeScannedPdf(["The first page speaks of anchors.", "The last page speaks of chains."]);
  });
  after(async () => {
    await platform.close();
    web.close();
  });

  const upload = (bytes: Buffer, fields: Record<string, string> = {}) => {
    const form = new FormData();
    for (const [key, value] of Object.entries(fields)) form.set(key, value);
    form.set("file", new File([new Uint8Array(bytes)], "harbour.pdf"));
    return client.request("POST", "/rag/ingest", { raw: form });
  };
  const serve = (path: string, body: Buffer, etag?: string) =>
    web.put(path, { body, type: "application/pdf", headers: etag === undefined ? {} : { etag } });
  const warningsAt = (answer: ApiResponse, path = "warnings") => (answer.at(path) as Warning[]) ?? []; // the client checked the shape
  const get = (id: string) => client.get(`/rag/documents/${id}`);
  const expectScan = (warnings: Warning[]) => {
    const warning = warnings.find(({ code }) => code === "pages_without_text");
    expect(warning?.pages).to.deep.equal([2]);
    expect(warning?.message).to.be.a("string").and.match(/\w/);
  };
  const found = async (query: string) => {
    const { body } = await client.post("/rag/query", { query, mode: "lexical", topK: 100 });
    return (body as { results: { documentId: string }[] }).results.map(({ documentId }) => documentId);
  };

  it("names in each answer the page that could not be read", async () => {
    const made = await upload(scanned);
    expect(made.status, made.text).to.equal(201);
    expectScan(warningsAt(made));
    const id = made.string("documentId");
    const document = await get(id);
    expectScan(warningsAt(document));
    expect((await client.get(`/jobs/${document.string("jobId")}`)).at("result.warnings")).to.deep.equal(
      made.at("warnings"),
    );
    const { body } = await client.get("/rag/documents");
    const listed = (body as { documentId: string; warnings: Warning[] }[]).find((one) => one.documentId === id);
    expectScan(listed?.warnings ?? []);
  });

  it("is empty if nothing is missing", async () => {
    const made = await client.post("/rag/ingest", { content: "# Anchors\n\nThey are heavy." });
    expect(made.at("warnings")).to.deep.equal([]);
    expect((await get(made.string("documentId"))).at("warnings")).to.deep.equal([]);
  });

  it("is that of the version which queries see", async () => {
    serve("/quay", scanned, '"1"');
    const made = await client.post("/rag/ingest", { url: `${web.origin}/quay` });
    const id = made.string("documentId");
    const refresh = () => client.post(`/rag/documents/${id}/refresh`, {});
    const unchanged = await refresh();
    expect(unchanged.at("unchanged")).to.equal(true);
    expectScan(warningsAt(unchanged));
    expectScan(warningsAt(await get(id)));
    serve("/quay", whole, '"2"');
    expect((await refresh()).at("warnings")).to.deep.equal([]);
    expect((await get(id)).at("warnings")).to.deep.equal([]);
    expectScan(warningsAt(await upload(scanned, { documentId: id })));
    expectScan(warningsAt(await get(id)));
    const broken = await upload(Buffer.from("%PDF-1.7 this is none"), { documentId: id });
    expect(broken.status).to.equal(422);
    expectScan(warningsAt(await get(id)));
  });

  it("is shown with a file of a vector store", async () => {
    const openai = new OpenAI({ apiKey: platform.keys.member, baseURL: `${platform.url}/v1` });
    const store = await openai.vectorStores.create({ name: "Harbour" });
    const upload = async (bytes: Buffer) =>
      openai.vectorStores.files.uploadAndPoll(store.id, await toFile(bytes, "harbour.pdf"), { pollIntervalMs: 20 });
    const file = await upload(scanned);
    expect(file.status).to.equal("completed");
    expectScan((file as unknown as { warnings: Warning[] }).warnings); // beside what OpenAI's type has
    expect(await upload(whole)).not.to.have.property("warnings");
  });

  describe("with requireComplete", () => {
    it("refuses a source that would lose something, and leaves nothing to be found", async () => {
      const lossy = await makeScannedPdf(["Only here is a grapnel.", null]);
      const refused = await upload(lossy, { requireComplete: "true" });
      expect([refused.status, refused.at("error.code")]).to.deep.equal([422, "source_incomplete"]);
      expectScan(warningsAt(refused, "error.details.warnings"));
      expect(await found("grapnel")).to.deep.equal([]);
      const { body } = await client.get("/rag/documents?status=failed");
      const [newest] = body as { documentId: string; chunks: number; error: { code: string } }[];
      expect(newest).to.deep.include({ chunks: 0, requireComplete: true });
      expect(newest?.error.code).to.equal("source_incomplete");
      expect((await client.get(`/rag/documents/${newest?.documentId}/chunks`)).at("data")).to.deep.equal([]);
    });

    it("takes a source of which nothing is lost", async () => {
      const made = await upload(whole, { requireComplete: "true" });
      expect([made.status, made.at("warnings")]).to.deep.equal([201, []]);
      const text = await client.post("/rag/ingest", { content: "A buoy is red.", requireComplete: true });
      expect(text.status).to.equal(201);
      expect((await get(text.string("documentId"))).at("requireComplete")).to.equal(true);
    });

    it("holds for later readings of the document, whose earlier version stays", async () => {
      serve("/pier", await makeScannedPdf(["A pier has piles.", "It has a capstan too."]), '"1"');
      const made = await client.post("/rag/ingest", { url: `${web.origin}/pier`, requireComplete: true });
      const id = made.string("documentId");
      serve("/pier", scanned, '"2"');
      const refused = await client.post(`/rag/documents/${id}/refresh`, {});
      expect([refused.status, refused.at("error.code")]).to.deep.equal([422, "source_incomplete"]);
      expectScan(warningsAt(refused, "error.details.warnings"));
      const kept = await get(id);
      expect(kept.body).to.deep.include({ status: "indexed", chunks: 2, warnings: [] });
      expect(kept.at("error.code")).to.equal("source_incomplete");
      expect(await found("capstan")).to.include(id);
      const again = await client.post("/rag/ingest", { url: `${web.origin}/pier` });
      expect(again.at("error.code"), "an ingest that says nothing of it").to.equal("source_incomplete");
      const allowed = await client.post("/rag/ingest", { url: `${web.origin}/pier`, requireComplete: false });
      expect(allowed.status, allowed.text).to.equal(201);
      expectScan(warningsAt(await get(id)));
      expect((await get(id)).at("error")).to.equal(undefined);
    });

    it("is a boolean, in a form the word", async () => {
      const form = await upload(whole, { requireComplete: "maybe" });
      expect([form.status, form.at("error.param")]).to.deep.equal([400, "requireComplete"]);
      const json = await client.post("/rag/ingest", { content: "A buoy.", requireComplete: "true" });
      expect([json.status, json.at("error.param")]).to.deep.equal([400, "requireComplete"]);
    });
  });
});
