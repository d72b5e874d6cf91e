import { expect } from "chai";
import { ingestionQueue } from "../../src/jobs/queues.ts";
import type { Platform } from "../../src/platform.ts";
import { type EmbeddingServer, startEmbeddingServer, toCustomProvider, tokensOf } from "../support/embedding-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { raceWorkers } from "../support/race-workers.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { takeTurn } from "../support/worker-turn.ts";

const count = 2;
const textOf = (n: number) => `Lock ${n} of the canal is ${n * 7 + 20} feet long.`;
const texts = Array.from({ length: count }, (_, n) => textOf(n));
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
/** No document has been moved before this command of a worker. */
const firstMove = 20;
type Begun = { tenantId: string; recordId: string; jobId: string; isLastAttempt: boolean };
const later = { headers: { prefer: "respond-async" } };

describe("a move to another embedding model that two workers run at once", () => {
  let server: EmbeddingServer;
  let test: TestPlatform;
  let owner: ApiClient;
  let tenantId: string;
  let documentIds: string[];
  const platforms = new Set<Platform>();
  before(async () => {
    server = await startEmbeddingServer();
    const env = {
      FETCH_ALLOW_ORIGINS: new URL(server.url).origin,
    };
    test = await startPlatform({ workers: false, env });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
    const provider = toCustomProvider(server, ["dense-256", "dense-1024"]);
    const added = await owner.request("PUT", "/ai/providers/custom/lab", { body: provider });
    expect(added.status, added.text).to.be.oneOf([200, 201]);
    await setModel("lab/dense-1024");
    documentIds = await Promise.all(texts.map(ingest));
  });
  after(async () => {
    await test.close();
    await server.close();
  });

  const setModel = async (embeddingModel: string) => {
    const set = await owner.request("PUT", "/rag/settings", { body: { embeddingModel } });
    expect(set.status, set.text).to.equal(200);
  };
  const ingest = async (content: string) => {
    const accepted = await owner.post("/rag/ingest", { content }, later);
    const turn = { queue: ingestionQueue, jobId: accepted.string("jobId") };
    expect(await takeTurn(test.platform, turn)).to.deep.equal({ end: "done" });
    return accepted.string("documentId");
  };
  const found = async () => {
    const answer = await owner.post("/rag/query", { query: "How long is the lock?", mode: "vector", topK: 50 });
    return (answer.at("results") as { content: string }[]).map(({ content }) => content).sort();
  };
  /** What the ledger has, and what the server of embeddings has served: requests and tokens. */
  const charged = async () => {
    const { requests, inputTokens } = (await owner.get("/usage")).at("total") as Record<string, number>;
    return [requests, inputTokens];
  };
  const served = () => {
    const { answered } = server;
    return [answered.length, tokensOf(answered.flatMap((one) => one.texts))];
  };
  const expectCharged = async (when: string) => {
    for (const { gateway } of platforms) await gateway.flush();
    expect(await charged(), when).to.deep.equal(served());
  };
  /** Chunks of a document, of all versions that its last two moves can have made. */
  const chunksOf = async (documentId: string) => {
    const { store } = test.platform;
    const { lastVersion = 0 } = (await store.documents.get(tenantId, documentId)) ?? {};
    const counts = Array.from({ length: 5 }, (_, back) =>
      store.chunks.count(tenantId, { documentId, version: lastVersion - back }),
    );
    return sum(await Promise.all(counts));
  };

  const begin = async (model: string): Promise<Begun> => {
    await setModel(model);
    const accepted = await owner.post("/rag/reindex", {}, later);
    expect(accepted.status, accepted.text).to.equal(202);
    const { _id: recordId = "" } = (await test.platform.store.reindexes.findOpen(tenantId)) ?? {};
    return { tenantId, recordId, jobId: accepted.string("jobId"), isLastAttempt: true };
  };

  const workOf = (platform: Platform) => {
    platforms.add(platform);
    return platform.rag.reindexing.work;
  };
  /** All documents are in one space, each is found once, and nothing else is left of it. */
  const expectMoved = async (space: { model: string; dimensions: number }, when: string) => {
    const settings = (await owner.get("/rag/settings")).body as { models: object[]; reindex?: object };
    expect(settings.models, when).to.deep.equal([{ ...space, documents: count, isPresent: true }]);
    expect(settings.reindex, when).to.equal(undefined);
    expect(await found(), when).to.deep.equal(texts);
    for (const documentId of documentIds) expect(await chunksOf(documentId), when).to.equal(1);
  };

  it("moves each document once, wherever one of them is frozen", async () => {
    let dimensions = 1_024;
    const commands = await raceWorkers({
      test,
      begin: () => {
        dimensions = dimensions === 256 ? 1_024 : 256;
        return begin(`lab/dense-${dimensions}`);
      },
      work: workOf,
      check: async ({ recordId }, ends, at) => {
        const when = `frozen at ${at}`;
        const model = `lab/dense-${dimensions}`;
        await expectMoved({ model, dimensions }, when);
        const { moved = 0 } = (await test.platform.store.reindexes.get(tenantId, recordId)) ?? {};
        expect(moved, when).to.be.within(at < firstMove ? count : 0, count);
        // What one of them has moved when it is frozen it counts when it goes on, which is too late.
        if (ends.other) expect(ends.other, when).to.deep.equal({ model, moved, left: 0 });
        expect(ends.frozen, when).to.deep.include({ model, left: 0 });
        await expectCharged(when);
      },
    });
    expect(commands).to.be.above(30);
  });
});
