import { Binary } from "bson";
import { expect } from "chai";
import { type Db, MongoClient } from "mongodb";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { newId } from "../../src/lib/ids.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** How many other tenants there are, before and after they grow, and the finished jobs and chunks of each. */
const [few, many] = [20, 200];
const jobsATenant = 100;
const chunksATenant = 100;
const dimensions = 512;
/** The quickest of so many calls is measured: other work of the machine makes a call slower, never quicker. */
const calls = 40;
/** A call that reads the data of all tenants takes up to ten times as long. */
const most = { factor: 1.5, ms: 1 };

const asked = { messages: [{ role: "user", content: "What is a lease?" }] };
const later = { headers: { prefer: "respond-async" } };
const lease = { title: "Lease", content: "A lease is renewed by a heartbeat." };

/** The main routes, as a client calls them. */
const routes: Record<string, (client: ApiClient) => Promise<ApiResponse>> = {
  "POST /ai/chat": (client) => client.post("/ai/chat", asked),
  "POST /rag/query": (client) => client.post("/rag/query", { query: "how a lease is renewed", topK: 10 }),
  "GET /rag/documents": (client) => client.get("/rag/documents?limit=20"),
  "GET /jobs": (client) => client.get("/jobs?limit=20"),
  "GET /agents": (client) => client.get("/agents"),
  "GET /usage": (client) => client.get("/usage"),
  "POST /rag/ingest": (client) => client.post("/rag/ingest", lease, later), // the last: lists find what is older than other tenants' records
};

describe("a call", function () {
  this.timeout(180_000);
  let test: TestPlatform;
  let client: ApiClient;
  const small = new Map<string, number>();
  const large = new Map<string, number>();

  before("measure each route among few tenants, and among many", async () => {
    test = await startPlatform({ services: "private", workers: false });
    client = makeClient({ url: test.url, key: test.keys.owner });
    await withDatabase(test, async (db) => {
      for (let n = 0; n < 20; n += 1) expect((await client.post("/rag/ingest", lease, later)).status).to.equal(202);
      await addTenants(db, few);
      for (const [name, call] of Object.entries(routes)) small.set(name, await quickest(() => call(client)));
      await addTenants(db, many - few);
      for (const [name, call] of Object.entries(routes)) large.set(name, await quickest(() => call(client)));
    });
  });
  after(() => test.close());

  for (const name of Object.keys(routes)) {
    it(`of ${name} takes as long when other tenants, their jobs and their chunks have grown by ten`, () => {
      const [before = Number.NaN, after = Number.NaN] = [small.get(name), large.get(name)];
      expect(after, `${before} ms before`).to.be.at.most(before * most.factor + most.ms);
    });
  }
});

async function quickest(call: () => Promise<ApiResponse>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let n = 0; n < calls; n += 1) {
    const started = performance.now();
    const response = await call();
    best = Math.min(best, performance.now() - started);
    expect(response.status, response.text).to.be.below(300);
  }
  return best;
}

async function withDatabase(test: TestPlatform, work: (db: Db) => Promise<void>): Promise<void> {
  const { dataDir, mongo } = test.platform.config;
  const logger = makeLogger({ level: "silent", name: "test" });
  const services = await ensureServices({ dataDir, mongo: mongo.url === undefined, redis: false, logger });
  const opened = new MongoClient(mongo.url ?? services.mongoUrl ?? "");
  try {
    await work(opened.db(mongo.db));
  } finally {
    await opened.close();
    await services.close();
  }
}

/** Writes tenants with finished jobs and one live document each, in the shapes of their stores, which spares thousands of jobs. */
async function addTenants(db: Db, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const [tenantId, documentId, now] = [newId("tenant"), newId("document"), new Date()];
    await insert(db, "tenants", [{ _id: tenantId, name: `tenant ${tenantId}`, createdAt: now }]);
    await insert(
      db,
      "jobs",
      Array.from({ length: jobsATenant }, () => finishedJob(tenantId, now)),
    );
    const counts = { version: 1, lastVersion: 1, chunks: chunksATenant, metadata: {}, tags: [] };
    const about = { tenantId, title: "Paper", status: "indexed", source: { kind: "content" } };
    const vectorSpace = `switchyard-offline-embedding:${dimensions}`;
    await insert(db, "documents", [
      { _id: documentId, ...about, ...counts, vectorSpace, createdAt: now, updatedAt: now },
    ]);
    const chunks = Array.from({ length: chunksATenant }, (_, at) => chunkOf({ tenantId, documentId }, at));
    await insert(db, "chunks", chunks);
  }
}

async function insert(
  db: Db,
  name: string,
  records: readonly ({ _id: string } & Record<string, unknown>)[],
): Promise<void> {
  await db.collection<{ _id: string }>(name).insertMany([...records], { ordered: false });
}

function finishedJob(tenantId: string, now: Date) {
  const [_id, documentId] = [newId("job"), newId("document")];
  return {
    ...{ _id, tenantId, kind: "ingestion", queue: "ingestion", status: "completed", subject: { documentId } },
    payload: { v: 1, jobId: _id, tenantId, documentId },
    progress: { stage: "completed", done: 1, total: 1 },
    ...{ isInteractive: false, priority: 1, attempts: 1, failures: 0, lastEventId: 3 },
    ...{ createdAt: now, updatedAt: now, startedAt: now, finishedAt: now },
    expireAt: new Date(now.getTime() + 86_400_000),
    result: { documentId, chunks: 1, status: "indexed" },
  };
}

function chunkOf({ tenantId, documentId }: { tenantId: string; documentId: string }, n: number) {
  return {
    ...{ _id: `${documentId}:1:${n}`, tenantId, documentId, version: 1, live: true, title: "Paper", n },
    content: `Part ${n} of ${documentId} tells how a lease is renewed. `.repeat(12),
    ...{ tokens: 150, hash: `${documentId}-${n}`, model: "switchyard-offline-embedding" },
    embedding: Binary.fromFloat32Array(Float32Array.from({ length: dimensions }, () => Math.random() - 0.5)),
  };
}
