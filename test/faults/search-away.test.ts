import { expect } from "chai";
import type { Document } from "mongodb";
import { makeLogger } from "../../src/observe/logger.ts";
import { openStore } from "../../src/store/store.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { type RefusingStore, startRefusingStore } from "../support/refusing-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const buildInfo = { ok: 1, version: "8.0.0", versionArray: [8, 0, 0, 0], modules: [], maxBsonObjectSize: 16 << 20 };
const stageOf = ({ pipeline }: Document) => Object.keys(pipeline?.[0] ?? {})[0];
const away = { ok: 0, code: 8, codeName: "UnknownError", errmsg: "PlanExecutor error: Error connecting to mongot" };

/** A store that is Atlas in what it says of itself. `rule` answers in its place. */
const asAtlas =
  (rule: (body: Document) => Document | number | undefined = () => undefined) =>
  (body: Document) =>
    "buildInfo" in body ? buildInfo : rule(body);

describe("a store whose search is away", function () {
  this.timeout(60_000);
  let store: RefusingStore;
  let test: TestPlatform;
  let client: ApiClient;
  let documentId: string;
  before(async () => {
    store = await startRefusingStore();
    store.answer(asAtlas());
    test = await startPlatform({ env: { MONGODB_URL: store.url } });
    client = makeClient({ url: test.url, key: test.keys.member });
    const made = await client.post("/rag/ingest", {
      content: "The valve of the pump opens at nine bar.",
      title: "pump",
    });
    expect(made.status, made.text).to.equal(201);
    documentId = made.string("documentId");
  });
  after(async () => {
    store?.answer(() => undefined);
    await test?.close();
    await store?.close();
  });

  const find = (mode: string) => client.post("/rag/query", { query: "At which pressure does the valve open?", mode });

  for (const [how, rule] of Object.entries({
    "is not connected": (body: Document) =>
      ["$vectorSearch", "$search"].includes(stageOf(body) ?? "") ? away : undefined,
    "answers with the code 489": (body: Document) =>
      ["$vectorSearch", "$search"].includes(stageOf(body) ?? "") ? { ...away, code: 489, errmsg: "no" } : undefined,
  })) {
    it(`answers queries of a tenant with few chunks by looking through them, when it ${how}`, async () => {
      store.answer(asAtlas(rule));
      for (const mode of ["hybrid", "vector", "lexical"]) {
        const found = await find(mode);
        expect([found.status, found.at("results[0].documentId")], found.text).to.deep.equal([200, documentId]);
      }
    });
  }

  it("answers by one search alone, and says so, when a tenant has more chunks than can be looked through", async () => {
    const many = (body: Document) => {
      if (stageOf(body) === "$vectorSearch") return away;
      if (body.find !== "chunks" || body.limit !== 5_001) return undefined;
      const chunk = { _id: "x", documentId: "doc_x", version: 1, n: 0, content: "", title: "", model: "none" };
      return { ok: 1, cursor: { id: 0n, ns: "x.chunks", firstBatch: Array.from({ length: 5_001 }, () => chunk) } };
    };
    store.answer(asAtlas(many));
    const byWords = await find("hybrid");
    expect([byWords.status, byWords.at("results[0].documentId")], byWords.text).to.deep.equal([200, documentId]);
    expect(byWords.string("warnings[0]")).to.include("those of words");
    const alone = await find("vector");
    expect([alone.status, alone.at("error.code")]).to.deep.equal([503, "unavailable"]);
    expect(Number(alone.headers.get("retry-after"))).to.be.above(0);
  });

  it("is used again as soon as it answers", async () => {
    store.answer(asAtlas());
    for (const mode of ["hybrid", "vector", "lexical"])
      expect((await find(mode)).at("results[0].documentId"), mode).to.equal(documentId);
  });
});

describe("a store that builds its indexes for long", function () {
  this.timeout(60_000);

  const openOn = async (rule: (body: Document) => Document | number | undefined) => {
    const store = await startRefusingStore();
    store.answer(rule);
    const lines: string[] = [];
    const logger = makeLogger({ level: "warn", name: "test" });
    logger.warn = ((given: unknown) => void lines.push(String(given))) as typeof logger.warn;
    const startedAt = performance.now();
    const opened = await openStore({ url: store.url, db: "slow", timeoutMs: 1_000, logger });
    const tookMs = performance.now() - startedAt;
    return {
      lines,
      tookMs,
      opened,
      close: async () => {
        store.answer(() => undefined);
        await opened.close();
        await store.close();
      },
    };
  };

  it("is waited for beyond the time of requests if they keep records unique, with a sentence that says so", async () => {
    const slow = (body: Document) => (body.createIndexes === "apiKeys" ? 5_500 : undefined);
    const { lines, close, opened } = await openOn(slow);
    expect(lines.join()).to.include("waiting for indexes that keep records unique");
    expect(await opened.dataVersion()).to.be.a("number");
    await close();
  });

  it("serves while others are built", async () => {
    const slow = (body: Document) => (body.createIndexes === "completions" ? 12_000 : undefined);
    const { lines, tookMs, opened, close } = await openOn(slow);
    expect(tookMs).to.be.below(11_000);
    expect(lines.join()).to.include("indexes are being built");
    expect(await opened.dataVersion()).to.be.a("number");
    await close();
  });

  it("leaves API and workers at work while each takes a minute, but for those that keep records unique and of chunks", async () => {
    const store = await startRefusingStore();
    let delayed = 0;
    store.answer((body) => {
      if (!("createIndexes" in body) || body.createIndexes === "chunks") return undefined;
      if (body.indexes.some(({ unique }: { unique?: boolean }) => unique === true)) return undefined;
      delayed += 1;
      return 60_000;
    });
    const startedAt = performance.now();
    const test = await startPlatform({ env: { MONGODB_URL: store.url } });
    try {
      expect(performance.now() - startedAt).to.be.below(30_000);
      expect(delayed, "indexes that are built").to.be.above(0);
      const client = makeClient({ url: test.url, key: test.keys.member });
      const made = await client.post("/rag/ingest", { content: "The valve of the pump opens at nine bar." });
      expect(made.status, made.text).to.equal(201);
      const found = await client.post("/rag/query", { query: "When does the valve open?" });
      expect([found.status, found.at("results[0].documentId")], found.text).to.deep.equal([200, made.at("documentId")]);
      const messages = [{ role: "user", content: "What is a lease?" }];
      expect((await client.post("/ai/chat", { model: "switchyard-offline", messages })).status).to.equal(200);
      expect((await client.get("/jobs")).status, "lists").to.equal(200);
    } finally {
      await test.close();
      await store.close();
    }
  });

  it("does not hold up the start by a search index", async () => {
    const building = (body: Document) => {
      if ("buildInfo" in body) return buildInfo;
      if (stageOf(body) !== "$listSearchIndexes") return undefined;
      const index = { name: "chunks_text", type: "search", queryable: false, latestDefinition: {} };
      return {
        ok: 1,
        cursor: { id: 0n, ns: "slow.chunks", firstBatch: [index, { ...index, name: "chunks_embedding" }] },
      };
    };
    const { tookMs, opened, close } = await openOn((body) =>
      "updateSearchIndex" in body ? { ok: 1 } : building(body),
    );
    expect(tookMs).to.be.below(10_000);
    const ready = await opened.checkSearch().then(
      () => "ready",
      (error: Error) => error.message,
    );
    expect(ready).to.include("search index");
    await close();
  });
});
