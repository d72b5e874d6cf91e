import { Binary } from "bson";
import type { Db } from "mongodb";
import { newId } from "../../src/ids.ts";
import { connectStore } from "../../src/store/connect.ts";
import { format, type Measured } from "./goals.ts";
import { median, seededRandom } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

/** What other tenants have at 1×. */
const tenants = 20;
const jobsATenant = 100;
const chunksATenant = 100;
/** What the tenant has that is measured, at 1× and at 10×. */
const ownDocuments = 20;
const growth = 10;
const rounds = 8;
const callsARound = 12;
const dimensions = 512;

type Call = (stack: Stack) => Promise<Response>;

const asked = { messages: [{ role: "user", content: "What is a lease?" }] };
const get =
  (path: string): Call =>
  (stack) =>
    fetch(`${stack.url}${path}`, { headers: stack.headers });
const post =
  (path: string, body: object): Call =>
  (stack) =>
    fetch(`${stack.url}${path}`, {
      method: "POST",
      headers: { ...stack.headers, prefer: "respond-async" },
      body: JSON.stringify(body),
    });

/** The main routes, as a client calls them. */
const routes: Record<string, Call> = {
  "POST /ai/chat": post("/ai/chat", asked),
  "POST /rag/query": post("/rag/query", { query: "how a lease is renewed", topK: 10 }),
  "POST /rag/ingest": post("/rag/ingest", { title: "Lease", content: "A lease is renewed by a heartbeat." }),
  "GET /rag/documents": get("/rag/documents?limit=20"),
  "GET /jobs": get("/jobs?limit=20"),
  "GET /agents": get("/agents"),
  "GET /usage": get("/usage"),
};

/**
 * How the latency of each main route grows when other tenants, their chunks and their finished jobs grow by 10: the exponent
 * of p50, 0 where it does not grow, 1 where it grows as they do. Two platforms stand side by side and take turns.
 */
export async function growthLines(): Promise<Measured[]> {
  const small = await openStack();
  try {
    const large = await openStack();
    try {
      await fill(small, 1);
      await fill(large, growth);
      return await compare(small, large);
    } finally {
      await large.close();
    }
  } finally {
    await small.close();
  }
}

async function compare(small: Stack, large: Stack): Promise<Measured[]> {
  const lines: Measured[] = [];
  for (const [name, call] of Object.entries(routes)) {
    const times: Record<"small" | "large", number[]> = { small: [], large: [] };
    for (let round = 0; round <= rounds; round += 1) {
      for (const [side, stack] of [["small", small] as const, ["large", large] as const]) {
        for (let n = 0; n < callsARound; n += 1) {
          const ms = await timed(call, stack);
          if (round > 0) times[side].push(ms); // the first one warms up
        }
      }
    }
    const [before, after] = [median(times.small), median(times.large)];
    lines.push({
      what: `growth of ${name} when other tenants, their chunks and jobs grow by ${growth}`,
      anchor: `1×: ${format(before)} ms`,
      product: `${growth}×: ${format(after)} ms`,
      value: Math.max(0, Math.log(after / before) / Math.log(growth)),
      must: 0.05,
      aim: 0.02,
      isMoreBetter: false,
      unit: "",
    });
  }
  return lines;
}

async function timed(call: Call, stack: Stack): Promise<number> {
  const started = performance.now();
  const response = await call(stack);
  const text = await response.text();
  if (response.status >= 300) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return performance.now() - started;
}

/** Gives the platform's other tenants what they have at a size, straight into the store, and its own tenant some documents. */
async function fill(stack: Stack, size: number): Promise<void> {
  const { db, close } = await connectStore({ url: stack.mongoUrl, db: "switchyard", timeoutMs: 60_000 });
  try {
    const own = await db.collection("tenants").findOne({ name: "default" });
    if (!own) throw new Error("the bench's tenant is missing");
    for (let n = 0; n < ownDocuments; n += 1) await addDocument(db, { tenantId: String(own._id), chunks: 10, seed: n });
    for (let n = 0; n < tenants * size; n += 1) {
      const tenantId = newId("tenant");
      await insert(db, "tenants", [{ _id: tenantId, name: `tenant ${n}`, createdAt: new Date() }]);
      await insert(
        db,
        "jobs",
        Array.from({ length: jobsATenant }, () => finishedJob(tenantId)),
      );
      await addDocument(db, { tenantId, chunks: chunksATenant, seed: n });
    }
  } finally {
    await close();
  }
}

/** Documents in the shapes of their stores, written by hand to spare thousands of real jobs. */
async function insert(
  db: Db,
  name: string,
  documents: readonly ({ _id: string } & Record<string, unknown>)[],
): Promise<void> {
  await db.collection<{ _id: string }>(name).insertMany([...documents]);
}

function finishedJob(tenantId: string) {
  const [now, jobId, documentId] = [new Date(), newId("job"), newId("document")];
  return {
    _id: jobId,
    tenantId,
    kind: "ingestion",
    queue: "ingestion",
    payload: { v: 1, jobId, tenantId, documentId },
    subject: { documentId },
    status: "completed",
    progress: { stage: "completed", done: 1, total: 1 },
    isInteractive: false,
    priority: 1,
    attempts: 1,
    failures: 0,
    createdAt: now,
    updatedAt: now,
    startedAt: now,
    finishedAt: now,
    expireAt: new Date(now.getTime() + 86_400_000),
    lastEventId: 3,
    result: { documentId, chunks: 1, status: "indexed" },
  };
}

async function addDocument(db: Db, document: { tenantId: string; chunks: number; seed: number }): Promise<void> {
  const { tenantId, seed } = document;
  const [documentId, now, title] = [newId("document"), new Date(), `paper ${seed}`];
  const random = seededRandom(seed + 1);
  const source = { kind: "content" };
  const about = { _id: documentId, tenantId, title, status: "indexed", version: 1, lastVersion: 1, source };
  const rest = { chunks: document.chunks, metadata: {}, tags: [], createdAt: now, updatedAt: now };
  const vectorSpace = `switchyard-offline-embedding:${dimensions}`;
  await insert(db, "documents", [{ ...about, ...rest, vectorSpace }]);
  const chunks = Array.from({ length: document.chunks }, (_, n) => ({
    _id: `${documentId}:1:${n}`,
    tenantId,
    documentId,
    version: 1,
    live: true,
    title,
    n,
    content: `Part ${n} of paper ${seed} tells how a lease is renewed. `.repeat(12),
    tokens: 150,
    hash: `${seed}-${n}`,
    model: "switchyard-offline-embedding",
    embedding: Binary.fromFloat32Array(Float32Array.from({ length: dimensions }, () => random() - 0.5)),
  }));
  await insert(db, "chunks", chunks);
}
