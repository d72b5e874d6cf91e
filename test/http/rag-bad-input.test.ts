import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { makeDocxBomb, makePdf } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const MB = 1024 * 1024;
const jsonLimit = 2 * MB;

describe("knowledge retrieval, bad input", () => {
  let web: DocumentServer;
  let canary: DocumentServer;
  let platform: TestPlatform;
  let client: ApiClient;

  before(async () => {
    web = await startDocumentServer();
    canary = await startDocumentServer();
    platform = await startPlatform({
      env: { FETCH_ALLOW_ORIGINS: web.origin, MAX_JSON_BYTES: String(Math.floor(jsonLimit / 5)) },
    });
    client = makeClient({ url: platform.url, key: platform.keys.member });
  });
  after(async () => {
    await platform.close();
    web.close();
    canary.close();
  });

  const upload = (bytes: Buffer, name: string, fields: Record<string, string> = {}) => {
    const form = new FormData();
    for (const [key, value] of Object.entries(fields)) form.set(key, value);
    form.set("file", new File([new Uint8Array(bytes)], name));
    return client.request("POST", "/rag/ingest", { raw: form });
  };

  const badBodies: [string, unknown][] = [
    ["nothing", {}],
    ["an empty text", { content: "" }],
    ["a text that is a number", { content: 5 }],
    ["a url that is a list", { url: ["http://example.com"] }],
    ["an empty title", { content: "x", title: " " }],
    ["a long title", { content: "x", title: "t".repeat(301) }],
    ["nested metadata", { content: "x", metadata: { a: { b: 1 } } }],
    ["a metadata key with a dot", { content: "x", metadata: { "a.b": 1 } }],
    ["a metadata key with a dollar", { content: "x", metadata: { $where: "1" } }],
    [
      "too many metadata",
      { content: "x", metadata: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`k${n}`, n])) },
    ],
  ];
  for (const [name, body] of badBodies) {
    it(`answers 400 to an ingest of ${name}`, async () => {
      expect((await client.post("/rag/ingest", body)).status).to.equal(400);
    });
  }

  const badQueries: [string, unknown][] = [
    ["no query", {}],
    ["an empty query", { query: "  " }],
    ["topK 0", { query: "x", topK: 0 }],
    ["topK 101", { query: "x", topK: 101 }],
    ["topK 1.5", { query: "x", topK: 1.5 }],
    ["an unknown mode", { query: "x", mode: "fuzzy" }],
    ["an id that is none", { query: "x", documentIds: ["doc_1"] }],
    ["no ids", { query: "x", documentIds: [] }],
    ["an operator as a filter", { query: "x", filter: { year: { $gt: 1 } } }],
    ["an operator as a filter's key", { query: "x", filter: { $where: "sleep(1000)" } }],
  ];
  for (const [name, body] of badQueries) {
    it(`answers 400 to a query with ${name}`, async () => {
      expect((await client.post("/rag/query", body)).status).to.equal(400);
    });
  }

  it("refuses an address that is not public at submission, and never goes there", async () => {
    canary.put("/", { body: "secret" });
    for (const url of [
      canary.origin,
      "http://localhost:1/",
      "http://[::1]/",
      "file:///etc/passwd",
      "http://169.254.169.254/",
    ]) {
      const answer = await client.post("/rag/ingest", { url });
      expect(answer.status, url).to.equal(400);
      expect(answer.at("error.code"), url).to.equal("source_refused");
    }
    expect(canary.hits("/")).to.equal(0);
  });

  it("refuses a redirect to such an address with the same error", async () => {
    canary.put("/x", { body: "secret" });
    web.put("/door", { body: "", status: 302, headers: { location: `${canary.origin}/x` } });
    const answer = await client.post("/rag/ingest", { url: `${web.origin}/door` });
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.at("error.code")).to.equal("source_refused");
    expect(canary.hits("/x")).to.equal(0);
  });

  it("answers 422 to an unreadable PDF, and keeps the document as failed, with the reason", async () => {
    const pdf = await makePdf(["text"]);
    const answer = await upload(pdf.subarray(0, 300), "broken.pdf");
    expect(answer.status, answer.text).to.equal(422);
    expect(answer.at("error.code")).to.equal("source_unreadable");
    const documentId = answer.string("error.details.documentId");
    const document = await client.get(`/rag/documents/${documentId}`);
    expect(document.body).to.include({ status: "failed", chunks: 0 });
    expect(document.at("error.code")).to.equal("source_unreadable");
    expect((await client.get("/rag/documents")).text).not.to.contain(documentId);
    expect((await client.get("/rag/documents?status=failed")).text).to.contain(documentId);
    expect((await client.delete(`/rag/documents/${documentId}`)).status).to.equal(204);
  });

  it("answers 422 to a DOCX that would inflate to gigabytes, and keeps serving", async () => {
    const answer = await upload(makeDocxBomb(300 * MB), "bomb.docx");
    expect(answer.status, answer.text).to.equal(422);
    expect((await client.post("/rag/ingest", { content: "still here" })).status).to.equal(201);
  });

  it("answers 400 to anything but one of url, content and file, and says so", async () => {
    const rule = /exactly one of `url`, `content` and `file`/;
    const bodies = [{}, { title: "x" }, { content: "x", url: "https://example.org/" }, { content: "x", file: "y" }];
    for (const body of bodies) {
      const answer = await client.post("/rag/ingest", body);
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.string("error.message")).to.match(rule);
    }
    const form = await upload(Buffer.from("A page."), "page.txt", { content: "Another page." });
    expect(form.status, form.text).to.equal(400);
    expect(form.string("error.message")).to.match(rule);
    expect((await client.post("/rag/ingest", { file: "x" })).text).to.contain("multipart/form-data");
  });

  it("answers 422 at once to a file that is no document, and keeps nothing of it", async () => {
    const png = Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
      "base64",
    );
    const program = Buffer.from([0x7f, ...Buffer.from("ELF"), 2, 1, 1, ...Buffer.alloc(40)]);
    const files: [string, Buffer, string][] = [
      ["dot.png", png, "image/png"],
      ["program", program, "application/x-elf"],
      ["letter.rtf", Buffer.from("{\\rtf1 A letter.}"), "application/rtf"],
      ["noise", Buffer.from([1, 2, 3, 4, 0, 5]), "neither text nor a document"],
    ];
    for (const [name, bytes, reason] of files) {
      const answer = await upload(bytes, name);
      expect(answer.status, answer.text).to.equal(422);
      expect(answer.string("error.message"), name).to.contain(reason);
      expect(answer.at("error.details"), name).to.equal(undefined);
    }
    const failed = await client.get("/rag/documents?status=failed");
    for (const [name] of files) expect(failed.text).to.not.contain(`"${name}"`);
  });

  it("takes a text that begins as a file of another type does", async () => {
    for (const text of ["BMW builds cars in Munich.", "MZ is the mark of Zbikowski.", "ID3 tags name a song."]) {
      expect((await upload(Buffer.from(text), "note.txt")).status, text).to.equal(201);
      expect((await client.post("/rag/ingest", { content: text })).status, text).to.equal(201);
    }
  });

  it("answers 422 to a URL that gives nothing, a picture, or an empty page", async () => {
    web.put("/picture", { body: "x", type: "image/png" });
    web.put("/empty", { body: " ", type: "text/html" });
    for (const path of ["/missing", "/picture", "/empty"]) {
      const answer = await client.post("/rag/ingest", { url: web.origin + path });
      expect(answer.status, path).to.equal(422);
    }
  });

  it("answers 413 to a text above the limit of JSON, and takes it as a file", async function () {
    this.timeout(120_000);
    const line = "The archive of the river gauge holds a reading for every hour of the year. ";
    const text = line.repeat(Math.ceil((jsonLimit + MB) / line.length));
    const asJson = await client.post("/rag/ingest", { content: text });
    expect(asJson.status).to.equal(413);
    const asFile = await client.request("POST", "/rag/ingest", {
      raw: formOf(new File([text], "gauge.txt", { type: "text/plain" })),
      headers: { prefer: "wait=110" },
    });
    expect(asFile.status, asFile.text).to.equal(201);
    expect(asFile.at("chunks")).to.be.above(2_000);
    expect((await client.delete(`/rag/documents/${asFile.string("documentId")}`)).status).to.equal(204);
  });

  it("answers 413 to a file above the limit, and 400 to a form without a file", async () => {
    const large = await upload(Buffer.alloc(50 * MB + 1, "x"), "large.txt");
    expect(large.status).to.equal(413);
    const empty = new FormData();
    empty.set("title", "nothing");
    expect((await client.request("POST", "/rag/ingest", { raw: empty })).status).to.equal(400);
  });
});

function formOf(file: File): FormData {
  const form = new FormData();
  form.set("file", file);
  return form;
}
