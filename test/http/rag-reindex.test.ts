import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { AppError } from "../../src/lib/errors.ts";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type EmbeddingServer, startEmbeddingServer, toCustomProvider } from "../support/embedding-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { loseAnswer } from "../support/lose-answer.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const count = 12;
const textOf = (n: number) => `Lock ${n} of the canal is ${n * 7 + 20} feet long.`;

describe("the move of documents to another embedding model", () => {
  let server: EmbeddingServer;
  let site: DocumentServer;
  let test: TestPlatform;
  let admin: ApiClient;
  before(async () => {
    [server, site] = await Promise.all([startEmbeddingServer(), startDocumentServer()]);
    const origins = [new URL(server.url).origin, site.origin];
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: origins.join(",") } });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    const provider = toCustomProvider(server, ["dense-256", "dense-1024"]);
    const added = await admin.request("PUT", "/ai/providers/custom/lab", { body: provider });
    expect(added.status, added.text).to.be.oneOf([200, 201]);
    site.put("/weir", { body: "The weir was built of timber." });
    for (let n = 0; n < count; n += 1) await ingest({ content: textOf(n) });
    await ingest({ url: `${site.origin}/weir` });
  });
  after(async () => {
    await test.close();
    await server.close();
    site.close();
  });
  afterEach(() => server.onRequest(() => undefined));

  const ingest = async (body: object) => {
    const answer = await admin.post("/rag/ingest", body);
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
  };
  const setModel = async (embeddingModel: string) => {
    const set = await admin.request("PUT", "/rag/settings", { body: { embeddingModel } });
    expect(set.status, set.text).to.equal(200);
  };
  const reindex = (prefer = "wait=60") => admin.post("/rag/reindex", {}, { headers: { prefer } });
  const settings = async () =>
    (await admin.get("/rag/settings")).body as { models: unknown[]; reindex?: { jobId: string } };
  const found = async (query: string) => {
    const answer = await admin.post("/rag/query", { query, mode: "vector", topK: 50 });
    expect(answer.status, answer.text).to.equal(200);
    return (answer.at("results") as { content: string }[]).map(({ content }) => content);
  };
  /** Holds embeddings of the texts until `letGo`; `arrived` is when one of them came. */
  const hold = (isHeld: (text: string) => boolean) => {
    const { promise: gate, resolve: letGo } = Promise.withResolvers<void>();
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    server.onRequest(({ texts }) => {
      if (!texts.some(isHeld)) return undefined;
      resolve();
      return gate;
    });
    return { letGo, arrived };
  };

  it("is a job that moves all of them, each of them once, and says how many", async () => {
    await setModel("lab/dense-256");
    const answer = await reindex();
    expect([answer.status, answer.body]).to.deep.equal([200, { model: "lab/dense-256", moved: count + 1, left: 0 }]);
    expect((await settings()).models).to.deep.equal([
      { model: "lab/dense-256", dimensions: 256, documents: count + 1, isPresent: true },
    ]);
    const embedded = server.textsOf("dense-256").filter((text) => text.startsWith("Lock"));
    expect(embedded.sort()).to.deep.equal(Array.from({ length: count }, (_, n) => textOf(n)).sort());
    expect(await found(textOf(3))).to.have.lengthOf(count + 1);
    const { data } = (await admin.get("/jobs?kind=reindex")).body as { data: object[] };
    expect(data[0]).to.deep.include({ status: "completed", title: "documents to lab/dense-256" });
    const again = await reindex();
    expect(again.at("moved")).to.equal(0);
  });

  it("runs once at a time, can be cancelled, and resumes where it was", async () => {
    await setModel("lab/dense-1024");
    const held = hold((text) => text === textOf(7));
    const accepted = await reindex("respond-async");
    expect(accepted.status).to.equal(202);
    await held.arrived;
    const second = await reindex("respond-async");
    expect([second.status, second.at("error.code"), second.at("error.details.jobId")]).to.deep.equal([
      409,
      "wrong_state",
      accepted.string("jobId"),
    ]);
    expect((await settings()).reindex).to.include({ jobId: accepted.string("jobId"), model: "lab/dense-1024" });
    expect(await found("Which lock is the longest?"), "found meanwhile").to.have.lengthOf(count + 1);
    expect((await admin.post(`/jobs/${accepted.string("jobId")}/cancel`)).status).to.be.oneOf([200, 202]);
    await pollUntil(async () => (await settings()).reindex === undefined, { what: "the end of the cancelled job" });
    held.letGo();
    expect(await found("Which lock is the longest?"), "found afterwards").to.have.lengthOf(count + 1);
    const answer = await reindex();
    expect([answer.status, answer.at("left")]).to.deep.equal([200, 0]);
    const embedded = server.textsOf("dense-1024").filter((text) => text.startsWith("Lock") && text !== textOf(7));
    expect(new Set(embedded).size).to.equal(count - 1);
    expect(await found("Which lock is the longest?")).to.have.lengthOf(count + 1);
  });

  it("never puts an earlier text in the place of a new one", async () => {
    await setModel("lab/dense-256");
    const held = hold((text) => text.includes("timber"));
    const accepted = await reindex("respond-async");
    await held.arrived;
    site.put("/weir", { body: "The weir is of concrete now." });
    await ingest({ url: `${site.origin}/weir` });
    held.letGo();
    await pollUntil(async () => (await admin.get(`/jobs/${accepted.string("jobId")}`)).at("status") === "completed");
    const contents = await found("What is the weir made of?");
    expect(contents.filter((text) => text.includes("weir"))).to.deep.equal(["The weir is of concrete now."]);
    expect((await settings()).models).to.have.lengthOf(1);
  });

  it("loses no document whose switch the store has made, and whose answer was lost", async () => {
    await setModel("lab/dense-1024");
    const { documents } = test.platform.store;
    const { finishMove } = documents;
    let lost = 0;
    documents.finishMove = async (...asked) => {
      const isMoved = await finishMove(...asked);
      lost += 1;
      if (lost <= 2) throw new AppError("unavailable", "The answer of the store was lost.", { retryable: true });
      return isMoved;
    };
    try {
      const answer = await reindex();
      expect([answer.status, answer.at("left")], answer.text).to.deep.equal([200, 0]);
      expect(lost).to.be.above(2);
      expect(await found("Which lock is the longest?")).to.have.lengthOf(count + 1);
    } finally {
      documents.finishMove = finishMove;
    }
  });

  it("is begun by the repeat of its call when the store has recorded it and its answer was lost", async () => {
    loseAnswer(test.platform.store.reindexes, "insertOnly");
    const headers = { prefer: "wait=60", "idempotency-key": "move" };
    const call = () => admin.post("/rag/reindex", {}, { headers });
    expect((await call()).status).to.equal(503);
    const repeat = await call();
    expect([repeat.status, repeat.at("left")], repeat.text).to.deep.equal([200, 0]);
  });

  it("leaves no vectors of before behind when its process is gone after the switch, and none of a version that was cut", async () => {
    const { platform } = test;
    const { documents, chunks } = platform.store;
    const tenantId = await tenantOf(test);
    const all = (await admin.get("/rag/documents?limit=100")).body as { documentId: string }[];
    const records = async () => Promise.all(all.map(({ documentId }) => documents.get(tenantId, documentId)));
    /** Chunks of versions that nobody sees. */
    const strays = async () => {
      const counts = (await records()).flatMap((one) =>
        Array.from({ length: one?.lastVersion ?? 0 }, async (_, n) => {
          const version = n + 1;
          return one && version !== one.version ? chunks.count(tenantId, { documentId: one._id, version }) : 0;
        }),
      );
      return (await Promise.all(counts)).reduce((sum, one) => sum + one, 0);
    };
    const { withStrays } = documents;
    const sweepLater = async () => {
      documents.withStrays = ({ limit }) => withStrays({ before: new Date(Date.now() + 3_600_000), limit });
      await platform.rag.sweepStrayChunks().finally(() => {
        documents.withStrays = withStrays;
      });
      return strays();
    };
    expect(await sweepLater(), "of what other tests have cut").to.equal(0);
    const { remove } = chunks;
    let losses = 0;
    chunks.remove = async (tenant, removed) => {
      if (removed.before === undefined || losses === 3) return remove(tenant, removed);
      losses += 1;
      throw new MongoNetworkError("the process is gone");
    };
    await setModel("lab/dense-256");
    const answer = await reindex().finally(() => {
      chunks.remove = remove;
    });
    expect([answer.status, answer.at("left"), losses], answer.text).to.deep.equal([200, 0, 3]);
    expect(await strays()).to.equal(3);
    await platform.rag.sweepStrayChunks();
    expect(await strays(), "a moment after").to.equal(3);
    expect(await sweepLater()).to.equal(0);
    expect(await withStrays({ before: new Date(Date.now() + 3_600_000), limit: 1 })).to.deep.equal([]);
    // While a job is at work, what it has written is not looked at.
    const { arrived, letGo } = hold((text) => text.includes("Tunnel 7"));
    const long = Array.from({ length: 400 }, (_, n) => `Tunnel ${n} is dry all the year round.`).join("\n\n");
    const ingesting = ingest({ content: long });
    await arrived;
    await sweepLater();
    letGo();
    await ingesting;
    expect((await found("Which tunnel is dry?")).some((content) => content.includes("Tunnel"))).to.equal(true);
  });

  it("is no member's to start, and moves nothing of another tenant", async () => {
    const member = makeClient({ url: test.url, key: test.keys.member });
    expect((await member.post("/rag/reindex", {})).status).to.equal(403);
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    const answer = await stranger.post("/rag/reindex", {}, { headers: { prefer: "wait=60" } });
    expect(answer.body).to.deep.include({ moved: 0, left: 0 });
  });
});
