import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { makeDocx, makePdf, makeProse } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Result = {
  content: string;
  documentId: string;
  score: number;
  similarity: number;
  title: string;
  chunkId: string;
  page?: number;
  heading?: string;
};

describe("knowledge retrieval", () => {
  let web: DocumentServer;
  let platform: TestPlatform;
  let client: ApiClient;
  let stranger: ApiClient;

  before(async () => {
    web = await startDocumentServer();
    platform = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: web.origin } });
    client = makeClient({ url: platform.url, key: platform.keys.member });
    stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
  });
  after(async () => {
    await platform.close();
    web.close();
  });

  const upload = (bytes: Buffer, name: string, fields: Record<string, string> = {}) => {
    const form = new FormData();
    for (const [key, value] of Object.entries(fields)) form.set(key, value);
    form.set("file", new File([new Uint8Array(bytes)], name));
    return client.request("POST", "/rag/ingest", { raw: form });
  };
  const find = async (query: string, more: object = {}, as = client): Promise<Result[]> => {
    const answer = await as.post("/rag/query", { query, ...more });
    expect(answer.status, answer.text).to.equal(200);
    return answer.at("results") as Result[]; // the client has parsed it by the route's schema
  };

  it("ingests a text and finds it at once, in every mode", async () => {
    const answer = await client.post("/rag/ingest", {
      content: "The zeppelin hangar opens at dawn and closes at dusk.",
      title: "Hangar hours",
    });
    expect(answer.status, answer.text).to.equal(201);
    expect(answer.body).to.include({ chunks: 1, status: "indexed" });
    for (const mode of ["hybrid", "vector", "lexical"]) {
      const [best] = await find("when does the zeppelin hangar open", { mode });
      expect(best, mode).to.include({
        content: "The zeppelin hangar opens at dawn and closes at dusk.",
        documentId: answer.string("documentId"),
        title: "Hangar hours",
      });
      expect(best?.score, mode).to.be.within(0.2, 1);
    }
  });

  it("asks an embedded store once for a query by vectors", async function () {
    if (process.env.MONGODB_URL)
      return skipTest(this, "indexes that lag behind cannot be read together with documents");
    await client.post("/rag/ingest", { content: "The signal box was built of oak." });
    const query = { mode: "vector" };
    expect(await find("what is the signal box made of", query)).to.not.deep.equal([]); // and is warm
    const { documents } = platform.platform.store;
    const { headers, spaces } = documents;
    const asked: string[] = [];
    documents.headers = (...args) => {
      asked.push("headers");
      return headers(...args);
    };
    documents.spaces = (...args) => {
      asked.push("spaces");
      return spaces(...args);
    };
    try {
      expect(await find("who built the signal box", query)).to.not.deep.equal([]);
      expect(asked).to.deep.equal([]);
      await find("who built the signal box", { mode: "hybrid" });
      expect(asked, "words and vectors are searched one after the other").to.have.members(["headers", "spaces"]);
    } finally {
      Object.assign(documents, { headers, spaces });
    }
  });

  it("gives the same similarity in every mode, (1 + cosine) / 2, and orders the results by score", async () => {
    for (const content of [
      "Gyroscopes keep ships level in rough seas.",
      "Rough paper.",
      "A ship at sea has ballast.",
    ]) {
      await client.post("/rag/ingest", { content });
    }
    const similarities = await Promise.all(
      ["hybrid", "vector", "lexical"].map(async (mode) => {
        const results = await find("gyroscopes in rough seas", { mode });
        expect(results.length, mode).to.be.at.least(2);
        const scores = results.map(({ score }) => score);
        expect(scores, mode).to.deep.equal([...scores].sort((a, b) => b - a));
        if (mode === "vector") for (const { score, similarity } of results) expect(score).to.equal(similarity);
        return results.find(({ content }) => content.startsWith("Gyroscopes"))?.similarity ?? 0;
      }),
    );
    for (const similarity of similarities) expect(similarity).to.be.closeTo(similarities[0] ?? Number.NaN, 1e-6);
  });

  it("scores a query that the documents answer above one that they do not", async () => {
    await client.post("/rag/ingest", { content: "Marmots whistle when an eagle circles above the meadow." });
    for (const mode of ["hybrid", "lexical"]) {
      const [known] = await find("when do marmots whistle", { mode });
      const [unknown] = await find("whistle of the quarterly interest rate of savings banks", { mode });
      expect(known?.score, mode).to.be.greaterThan(1.3 * (unknown?.score ?? 0));
    }
  });

  it("names the earlier document of the same content, and finds its chunks once", async () => {
    const content = "The quince tree by the north wall is pruned in February.";
    const first = await client.post("/rag/ingest", { content, title: "Garden" });
    const second = await client.post("/rag/ingest", { content, title: "Orchard" });
    expect(first.body).to.not.have.property("duplicateOf");
    expect(second.string("duplicateOf")).to.equal(first.string("documentId"));
    const shown = await client.get(`/rag/documents/${second.string("documentId")}`);
    expect(shown.string("duplicateOf")).to.equal(first.string("documentId"));
    for (const mode of ["hybrid", "vector", "lexical"]) {
      const found = await find("when is the quince tree pruned", { mode });
      expect(
        found.filter((result) => result.content === content),
        mode,
      ).to.have.length(1);
    }
  });

  it("finds documents that rank behind copies of one text", async () => {
    const copied = "The bellfounder tunes a carillon with a lathe.";
    const next = "A carillon has at least twenty-three bells.";
    for (const content of [copied, copied, copied, copied, next]) await client.post("/rag/ingest", { content });
    for (const mode of ["hybrid", "vector", "lexical"]) {
      const found = await find("the bellfounder tunes a carillon", { mode, topK: 2 });
      expect(
        found.map(({ content }) => content),
        mode,
      ).to.deep.equal([copied, next]);
    }
  });

  it("names a text by its first heading or line when it comes without a title", async () => {
    const answer = await client.post("/rag/ingest", { content: "\n# Lighthouse care\n\nClean the lens weekly." });
    const document = await client.get(`/rag/documents/${answer.string("documentId")}`);
    expect(document.body).to.include({ title: "Lighthouse care", status: "indexed", chunks: 1 });
  });

  it("reads PDF files, and gives the page", async () => {
    const answer = await upload(
      await makePdf(["Chapter on anchors.", "The quasar telescope needs cooling."]),
      "manual.pdf",
      {
        title: "Telescope manual",
      },
    );
    expect(answer.status, answer.text).to.equal(201);
    const [best] = await find("quasar telescope cooling");
    expect(best).to.include({ page: 2, title: "Telescope manual", documentId: answer.string("documentId") });
  });

  it("reads DOCX files, and gives the heading", async () => {
    const blocks = [
      { heading: "Bakery", level: 1 } as const,
      { heading: "Sourdough", level: 2 } as const,
      { text: "Feed the sourdough starter with rye flour every evening." },
    ];
    const answer = await upload(await makeDocx(blocks), "bakery.docx");
    expect(answer.status, answer.text).to.equal(201);
    const [best] = await find("sourdough starter rye flour");
    expect(best).to.include({ documentId: answer.string("documentId"), title: "Bakery" });
    expect(best?.heading).to.contain("Bakery");
  });

  it("finds every chunk by the words of the headings above it", async () => {
    const sections = { Brewing: "barley", Distilling: "juniper" };
    const texts = Object.entries(sections).map(([name, topic]) => `## ${name}\n\n${makeProse(40, topic)}`);
    const answer = await client.post("/rag/ingest", { content: `# Zymurgy\n\n${texts.join("\n\n")}` });
    const all = await find("zymurgy", { mode: "lexical", topK: 50 });
    expect(all).to.have.length(Number(answer.at("chunks")));
    const below = all.filter(({ heading }) => heading === "Zymurgy > Distilling").map(({ chunkId }) => chunkId);
    expect(below).to.have.length.above(1);
    const found = await find("distilling", { mode: "lexical", topK: 50 });
    expect(found.map(({ chunkId }) => chunkId)).to.have.members(below);
  });

  it("reads HTML, Markdown and text by URL, and takes their titles from their contents", async () => {
    const page = `<!doctype html><html><head><title>Falconry</title></head><body><article><h1>Falconry</h1>
      <p>A falconer trains the peregrine with a lure. ${makeProse(12, "falcon")}</p></article></body></html>`;
    web.put("/falcon", { body: page, type: "text/html" });
    web.put("/cheese.md", {
      body: "# Cheese\n\n## Ripening\n\nThe camembert ripens for three weeks.",
      type: "text/plain",
    });
    web.put("/plain", { body: "Cartographers draw isobars on weather maps." });
    const cases = [
      ["/falcon", "peregrine lure falconer", "Falconry"],
      ["/cheese.md", "camembert ripens weeks", "Cheese"],
      ["/plain", "cartographers isobars", "Cartographers draw isobars on weather maps."],
    ] as const;
    for (const [path, query, title] of cases) {
      const answer = await client.post("/rag/ingest", { url: web.origin + path });
      expect(answer.status, answer.text).to.equal(201);
      const [best] = await find(query);
      expect(best).to.include({ documentId: answer.string("documentId"), title });
    }
  });

  it("answers 202 at once if the client does not wait, and the job has the result", async () => {
    const body = { content: makeProse(400, "windmill"), title: "Windmills" };
    const accepted = await client.post("/rag/ingest", body, { headers: { prefer: "respond-async" } });
    expect(accepted.status).to.equal(202);
    expect(accepted.headers.get("location")).to.equal(accepted.string("statusUrl"));
    await platform.platform.jobs.wait(await tenantOf(platform), accepted.string("jobId"), {
      timeoutMs: 15_000,
      signal: new AbortController().signal,
    });
    const job = await client.get(accepted.string("statusUrl"));
    expect(job.at("status")).to.equal("completed");
    expect(job.at("result")).to.include({ documentId: accepted.string("documentId"), status: "indexed" });
  });

  it("filters by document and by metadata", async () => {
    const ids = await Promise.all(
      [2023, 2024].map(async (year) => {
        const body = { content: `The comet of ${year} was bright.`, metadata: { year, kind: "comet" } };
        return (await client.post("/rag/ingest", body)).string("documentId");
      }),
    );
    const documentsOf = async (more: object) => (await find("bright comet", more)).map(({ documentId }) => documentId);
    expect(await documentsOf({ documentIds: [ids[0]] })).to.deep.equal([ids[0]]);
    expect(await documentsOf({ filter: { year: 2024 } })).to.deep.equal([ids[1]]);
    expect(await documentsOf({ filter: { kind: "comet" } })).to.have.members(ids);
    expect(await documentsOf({ filter: { year: [2023, 2024], kind: "comet" }, documentIds: [ids[1]] })).to.deep.equal([
      ids[1],
    ]);
    expect(await documentsOf({ filter: { year: "2024" } })).to.deep.equal([]);
    for (const mode of ["vector", "lexical"]) {
      expect(await documentsOf({ filter: { year: 2023 }, mode }), mode).to.deep.equal([ids[0]]);
    }
  });

  it("lists documents as a bare array with the next page in Link", async () => {
    const first = await client.get("/rag/documents?limit=2");
    expect(first.body).to.be.an("array").with.lengthOf(2);
    const link = /^<([^>]+)>; rel="next"$/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
    const second = await client.get(link);
    const ids = [...(first.body as { documentId: string }[]), ...(second.body as { documentId: string }[])].map(
      ({ documentId }) => documentId,
    );
    expect(new Set(ids).size).to.equal(4);
    expect([...ids].sort().reverse()).to.deep.equal(ids);
    const last = await client.get("/rag/documents?limit=200");
    expect(last.headers.get("link")).to.equal(null);
  });

  it("deletes a document with its chunks and its source", async () => {
    const answer = await client.post("/rag/ingest", { content: "The xylophone workshop is in the cellar." });
    const documentId = answer.string("documentId");
    const tenantId = await tenantOf(platform);
    const gone = await client.delete(`/rag/documents/${documentId}`);
    expect({ status: gone.status, text: gone.text }).to.deep.equal({ status: 204, text: "" });
    expect((await client.get(`/rag/documents/${documentId}`)).status).to.equal(404);
    expect((await client.delete(`/rag/documents/${documentId}`)).status).to.equal(404);
    expect((await find("xylophone workshop cellar")).map((result) => result.documentId)).not.to.include(documentId);
    const { chunks, sources } = platform.platform.store;
    expect(await chunks.count(tenantId, { documentId, version: 1 })).to.equal(0);
    expect(await sources.read(tenantId, documentId)).to.equal(null);
  });

  it("hides a document as soon as its deletion starts, in every mode", async () => {
    const answer = await client.post("/rag/ingest", { content: "The glockenspiel rehearsal is in the attic." });
    const documentId = answer.string("documentId");
    const query = "glockenspiel rehearsal attic";
    const [best] = await find(query, { mode: "vector" });
    expect(best?.documentId).to.equal(documentId);
    await platform.platform.store.documents.beginDelete(await tenantOf(platform), documentId);
    for (const mode of ["hybrid", "vector", "lexical"]) {
      const found = await find(query, { mode });
      expect(
        found.map((result) => result.documentId),
        mode,
      ).not.to.include(documentId);
    }
  });

  it("keeps tenants apart", async () => {
    const answer = await client.post("/rag/ingest", { content: "The vault code of the first tenant is amaranth." });
    const documentId = answer.string("documentId");
    expect((await stranger.get(`/rag/documents/${documentId}`)).status).to.equal(404);
    expect((await stranger.delete(`/rag/documents/${documentId}`)).status).to.equal(404);
    expect((await stranger.get("/rag/documents")).body).to.deep.equal([]);
    for (const mode of ["hybrid", "vector", "lexical"]) {
      expect(await find("vault code amaranth", { mode, documentIds: [documentId] }, stranger), mode).to.deep.equal([]);
      expect(await find("vault code amaranth", { mode }, stranger), mode).to.deep.equal([]);
    }
    expect((await client.get(`/rag/documents/${documentId}`)).status).to.equal(200);
  });
});
