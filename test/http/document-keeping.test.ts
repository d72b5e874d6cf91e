import { expect } from "chai";
import { chooseDocuments } from "../../src/rag/choose-documents.ts";
import type { QueryInput } from "../../src/rag/query-schemas.ts";
import { makePdf } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Result = { content: string; documentId: string };

describe("documents that are kept", () => {
  let platform: TestPlatform;
  let client: ApiClient;

  before(async () => {
    platform = await startPlatform();
    client = makeClient({ url: platform.url, key: platform.keys.owner });
  });
  after(() => platform.close());

  const ingest = async (body: object) => {
    const made = await client.post("/rag/ingest", body);
    expect(made.status, made.text).to.equal(201);
    return made.string("documentId");
  };
  const find = async (query: object) => {
    const found = await client.post("/rag/query", { topK: 20, ...query });
    expect(found.status, found.text).to.equal(200);
    return found.at("results") as Result[];
  };
  const upload = (text: string, fields: Record<string, string>) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    form.set("file", new File([text], "note.txt"));
    return client.request("POST", "/rag/ingest", { raw: form });
  };

  it("are replaced by the caller's id or by the document's id, and keep one source each", async () => {
    const externalId = "wiki/42";
    const id = await ingest({ externalId, content: "The ferry leaves at nine.", metadata: { page: 1 } });
    expect(await ingest({ externalId, content: "The ferry leaves at ten." })).to.equal(id);
    expect((await upload("The ferry leaves at eleven.", { documentId: id })).string("documentId")).to.equal(id);
    const found = await find({ query: "ferry leaves" });
    expect(found.map(({ content }) => content)).to.deep.equal(["The ferry leaves at eleven."]);
    const view = await client.get(`/rag/documents/${id}`);
    expect(view.body).to.deep.include({ externalId, chunks: 1, metadata: { page: 1 }, status: "indexed" });
    expect(view.at("source.kind")).to.equal("file");
    expect(await ingest({ externalId, collection: "other", content: "The ferry of another collection." })).not.to.equal(
      id,
    );
    const tenantId = await tenantOf(platform);
    const { documents, sources } = platform.platform.store;
    const record = await documents.get(tenantId, id);
    expect(record?.formerSources).to.equal(undefined);
    expect(await sources.read(tenantId, id)).to.equal(null);
    expect(String(await sources.read(tenantId, record?.sourceId ?? ""))).to.equal("The ferry leaves at eleven.");
    expect((await client.delete(`/rag/documents/${id}`)).status).to.equal(204);
    await pollUntil(async () => (await sources.read(tenantId, record?.sourceId ?? "")) === null);
    expect(await ingest({ externalId, content: "The ferry has come back." })).not.to.equal(id);
  });

  it("are found at every moment while they are replaced, and keep the text when that fails", async () => {
    const externalId = "tram";
    await ingest({ externalId, content: "The tram is red in winter." });
    let isOver = false;
    const watch = async () => {
      while (!isOver) {
        const found = await find({ query: "tram winter", mode: "lexical" });
        expect(found.map(({ content }) => content.slice(0, 12))).to.deep.equal(["The tram is "]);
      }
    };
    const change = async () => {
      for (const colour of ["blue", "green", "white"])
        await ingest({ externalId, content: `The tram is ${colour} in winter.` });
      const failed = await client.post("/rag/ingest", { externalId, content: "   \n " });
      expect(failed.status).to.equal(422);
    };
    await Promise.all([change().finally(() => (isOver = true)), watch()]);
    expect((await find({ query: "tram winter" }))[0]?.content).to.equal("The tram is white in winter.");
  });

  it("are not replaced by an id that is not there, in another collection, or by two ids", async () => {
    const documentId = await ingest({ content: "The lighthouse is white." });
    const statusOf = async (body: object) => (await client.post("/rag/ingest", { content: "x", ...body })).status;
    expect(await statusOf({ documentId: "doc_01J00000000000000000000000" })).to.equal(404);
    expect(await statusOf({ documentId, collection: "other" })).to.equal(400);
    expect(await statusOf({ documentId, externalId: "one" })).to.equal(400);
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    expect((await stranger.post("/rag/ingest", { content: "x", documentId })).status).to.equal(404);
    expect((await stranger.request("PATCH", `/rag/documents/${documentId}`, { body: { title: "x" } })).status).to.equal(
      404,
    );
    const limited = (await client.post("/keys", { collections: ["other"] })).string("key");
    const other = makeClient({ url: platform.url, key: limited });
    expect((await other.post("/rag/ingest", { content: "x", documentId })).status).to.equal(404);
    expect((await other.request("PATCH", `/rag/documents/${documentId}`, { body: { title: "x" } })).status).to.equal(
      404,
    );
  });

  it("are filtered by ranges of numbers and dates, beside values", async () => {
    const at = (year: number, day: string) => ({ year, day, kind: "crane" });
    const old = await ingest({ content: "A crane of iron.", collection: "cranes", metadata: at(1990, "1990-05-01") });
    const young = await ingest({
      content: "A crane of steel.",
      collection: "cranes",
      metadata: at(2020, "2020-05-01"),
    });
    await ingest({ content: "A crane without a year.", collection: "cranes" });
    const ids = async (filter: object) =>
      (await find({ query: "crane", collection: "cranes", filter })).map(({ documentId }) => documentId).sort();
    expect(await ids({ year: { gte: 1990, lt: 2020 } })).to.deep.equal([old]);
    expect(await ids({ year: { gt: 1990 } })).to.deep.equal([young]);
    expect(await ids({ year: { lte: 2020 }, kind: "crane" })).to.deep.equal([old, young].sort());
    expect(await ids({ day: { gte: "1990-05-01T00:00:00Z", lt: "2020-05-01T00:00:00+02:00" } })).to.deep.equal([old]);
    expect(await ids({ day: { gt: 5 } })).to.deep.equal([]);
    expect(await ids({ year: { gt: 2020 } })).to.deep.equal([]);
    const among = (documentIds: string[]) =>
      find({ query: "crane", collection: "cranes", filter: { year: { gte: 1990 } }, documentIds });
    expect((await among([old])).map(({ documentId }) => documentId)).to.deep.equal([old]);
    const elsewhere = await ingest({ content: "A crane in another place.", metadata: at(2000, "2000-01-01") });
    expect(await among([elsewhere])).to.deep.equal([]);
    for (const range of [{}, { about: 5 }, { gt: "soon" }, { gt: true }]) {
      expect((await client.post("/rag/query", { query: "x", filter: { year: range } })).status).to.equal(400);
    }
  });

  it("are examined for a range up to a bound, and the search says whether more were left", async () => {
    for (let n = 0; n < 4; n += 1) await ingest({ content: `Lamp ${n}.`, collection: "lamps", metadata: { watts: n } });
    const search = async (most: number) => {
      const scan = { matches: ({ watts }: Record<string, unknown>) => Number(watts) >= 0, most };
      const where = { groups: [], collections: ["lamps"], limit: 10, scan };
      const { ids, isCut } = await platform.platform.store.documents.idsByTags(await tenantOf(platform), where);
      return [ids.length, isCut];
    };
    expect(await search(3)).to.deep.equal([3, true]);
    expect(await search(4)).to.deep.equal([4, false]);
  });

  it("are the only ones examined if a query names them", async () => {
    const id = await ingest({ content: "The derrick turns.", metadata: { tons: 3 } });
    const { store } = platform.platform;
    const idsByTags = () => Promise.reject(new Error("other documents were looked at"));
    const caller = { tenantId: await tenantOf(platform), collections: undefined };
    const among = (filter: NonNullable<QueryInput["filter"]>) =>
      chooseDocuments(
        { store: { ...store, documents: { ...store.documents, idsByTags } } },
        caller,
        { documentIds: [id, "doc_none"], filter },
        () => Promise.reject(new Error("a turn was waited for")),
      );
    expect(await among({ tons: { gt: 2 } })).to.deep.equal({ documentIds: [id] });
    expect(await among({ tons: [3, 4] })).to.deep.equal({ documentIds: [id] });
    expect(await among({ tons: { gt: 3 } })).to.deep.equal({ documentIds: [] });
  });

  it("change their title and metadata, and nothing else", async () => {
    const id = await ingest({
      content: "The boiler holds six bar.",
      title: "Boiler",
      metadata: { bar: 6, site: "north" },
    });
    const path = `/rag/documents/${id}`;
    const changed = await client.request("PATCH", path, { body: { title: "The boiler", metadata: { bar: 7 } } });
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.body).to.deep.include({ title: "The boiler", metadata: { bar: 7 }, chunks: 1, status: "indexed" });
    expect(await find({ query: "boiler", filter: { bar: 6 } })).to.deep.equal([]);
    expect(await find({ query: "boiler", filter: { bar: 7 } })).to.have.length(1);
    expect((await client.request("PATCH", path, { body: { title: "" } })).status).to.equal(400);
  });

  it("take the new name of their file, as their title only if they have no other", async () => {
    const upload = async (name: string, text: string | Buffer, fields: Record<string, string> = {}) => {
      const form = new FormData();
      for (const [key, value] of Object.entries(fields)) form.set(key, value);
      form.set("file", new File([new Uint8Array(Buffer.from(text))], name));
      return (await client.request("POST", "/rag/ingest", { raw: form })).string("documentId");
    };
    const rename = async (id: string, name: string) => {
      const { body } = await client.request("PATCH", `/rag/documents/${id}`, { body: { name } });
      const { title, source } = body as { title: string; source: { name: string } };
      return [title, source.name];
    };
    const bare = await upload("rope.pdf", await makePdf(["12 34"]));
    expect(await rename(bare, "ropes.pdf")).to.deep.equal(["ropes.pdf", "ropes.pdf"]);
    await upload("wires.pdf", await makePdf(["56 78"]), { documentId: bare });
    expect((await client.get(`/rag/documents/${bare}`)).at("title")).to.equal("wires.pdf");
    const titled = await upload("knot.html", "<title>Knots</title><p>A knot is tied.</p>");
    expect(await rename(titled, "knots.html")).to.deep.equal(["Knots", "knots.html"]);
    const given = await upload("hook.html", "<p>A hook is bent.</p>", { title: "hook.html" });
    expect(await rename(given, "hooks.html")).to.deep.equal(["hook.html", "hooks.html"]);
    const text = await ingest({ content: "A text has no file." });
    expect((await client.request("PATCH", `/rag/documents/${text}`, { body: { name: "a.txt" } })).status).to.equal(400);
  });

  it("that have failed are read again by their jobs, alone or with many", async () => {
    const form = new FormData();
    form.set("file", new File(["%PDF-1.7 broken"], "broken.pdf", { type: "application/pdf" }));
    const failed = await client.request("POST", "/rag/ingest", { raw: form });
    expect(failed.status, failed.text).to.equal(422);
    const jobOf = async (id: string) => (await client.get(`/rag/documents/${id}`)).string("jobId");
    const [document] = (await client.get("/rag/documents?status=failed")).body as { documentId: string }[];
    const id = document?.documentId ?? "";
    const before = await jobOf(id);
    const again = await client.post(`/jobs/${before}/retry`);
    expect([again.status, again.at("documentId")], again.text).to.deep.equal([202, id]);
    const jobId = again.string("jobId");
    expect([jobId === before, await jobOf(id)]).to.deep.equal([false, jobId]);
    await pollUntil(async () => (await client.get(`/jobs/${jobId}`)).at("status") === "failed");
    const many = await client.post("/jobs/retry", { kind: "ingestion", status: "failed" });
    expect(many.at("done"), many.text).to.be.at.least(1);
    await client.delete(`/rag/documents/${id}`);
    expect((await client.post(`/jobs/${jobId}/retry`)).status).to.be.oneOf([404, 409]);
  });

  it("show their chunks from one on that was cited, unless it is of an earlier version", async () => {
    const id = await ingest({ content: Array.from({ length: 400 }, (_, n) => `Line ${n} of the log.`).join("\n\n") });
    const chunks = (path = "") => client.get(`/rag/documents/${id}/chunks?limit=2${path}`);
    const second = (await chunks()).string("data.1.chunkId");
    const from = await chunks(`&chunkId=${second}`);
    expect([from.at("data.0.chunkId"), from.at("data.1.n")], from.text).to.deep.equal([second, 2]);
    expect((await chunks(`&chunkId=${second}&cursor=${from.at("nextCursor")}`)).at("data.0.n")).to.equal(3);
    for (const other of ["none", `${id}:2:1`, `${id}:1:999999`, "doc_x:1:1"])
      expect((await chunks(`&chunkId=${other}`)).status, other).to.equal(404);
    await upload("Now it is short.", { documentId: id });
    expect((await chunks(`&chunkId=${second}`)).status).to.equal(404);
  });

  it("are invisible from the instant they expire, and deleted afterwards", async () => {
    const content = "The buoy blinks twice.";
    const id = await ingest({ content, expiresAt: new Date(Date.now() + 3_600_000).toISOString() });
    expect(await find({ query: "buoy blinks", documentIds: [id] })).to.have.length(1);
    expect(
      (await client.request("PATCH", `/rag/documents/${id}`, { body: { expiresAt: null } })).body,
    ).not.to.have.property("expiresAt");
    expect((await client.post("/rag/ingest", { content, expiresAt: "2020-01-01T00:00:00Z" })).status).to.equal(400);
    const tenantId = await tenantOf(platform);
    const { documents } = platform.platform.store;
    const { expired } = documents;
    documents.expired = async () => []; // as between two sweeps
    await documents.describeOne(tenantId, id, { set: { expiresAt: new Date(Date.now() - 1) }, unset: [] });
    for (const mode of ["vector", "lexical", "hybrid"]) {
      const ids = (await find({ query: "buoy blinks", mode })).map(({ documentId }) => documentId);
      expect(ids).not.to.include(id);
    }
    expect((await client.get(`/rag/documents/${id}`)).status).to.equal(404);
    expect((await client.get(`/rag/documents/${id}/chunks`)).status).to.equal(404);
    expect((await client.get("/rag/documents")).text).not.to.contain(id);
    documents.expired = expired;
    await platform.platform.rag.collections.sweep();
    await pollUntil(
      async () => (await platform.platform.store.chunks.count(tenantId, { documentId: id, version: 1 })) === 0,
    );
  });
});
