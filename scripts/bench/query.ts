import { createRequire } from "node:module";
import { Binary } from "bson";
import { Agent, request } from "undici";
import { embedOffline } from "../../src/gateway/providers/edge/offline-embed.ts";
import { newId } from "../../src/ids.ts";
import { connectStore } from "../../src/store/connect.ts";
import { format, type Measured } from "./goals.ts";
import { median, percentile, seededRandom } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

const dimensions = 512;
const sizes = [10_000, 100_000];
const rounds = 5;
const callsPerRound = 40;
const topK = 10;

/** `/rag/query` in vector mode, less what any call over HTTP costs, against the bare SIMD scan of the same matrix. */
export async function queryBench(): Promise<Measured[]> {
  const stack = await openStack();
  const dispatcher = new Agent({ connections: 1 });
  const lines: Measured[] = [];
  try {
    let loaded = 0;
    for (const size of sizes) {
      await loadChunks(stack, loaded, size);
      loaded = size;
      lines.push(...(await measure(stack, size, dispatcher)));
    }
    return lines;
  } finally {
    await dispatcher.close();
    await stack.close();
  }
}

async function measure(stack: Stack, size: number, dispatcher: Agent): Promise<Measured[]> {
  const matrix = makeMatrix(0, size);
  const scan = makeScan(matrix, size);
  const texts = Array.from({ length: callsPerRound }, (_, index) => `how does part ${index} of a queue work`);
  const queries = embedOffline(texts, dimensions);
  const post = (path: string, body: object) => timedPost(`${stack.url}${path}`, stack.headers, body, dispatcher);
  const query = (text: string) => post("/rag/query", { query: text, topK, mode: "vector" });
  for (const text of texts.slice(0, 10)) await query(text);
  const bare: number[] = [];
  const product: number[] = [];
  const floor: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, text] of texts.entries()) {
      const vector = queries[index];
      if (!vector) throw new Error("a query has no vector");
      bare.push(scan(vector));
      product.push(await query(`${text} ${round}`)); // other texts each round: no cache answers for the search
      floor.push(await post("/bench/floor", { query: text }));
    }
  }
  const net = median(product) - median(floor);
  return [
    {
      what: `vector query p50, ${format(size).replace(/\..*/, "")} chunks of ${dimensions}`,
      anchor: `SIMD scan ${format(median(bare))} ms`,
      product: `${format(net)} ms (p99 ${format(percentile(product, 0.99))}, HTTP floor ${format(median(floor))})`,
      value: net / median(bare),
      must: 5,
      aim: 2,
      isMoreBetter: false,
      unit: "×",
    },
  ];
}

async function timedPost(url: string, headers: Record<string, string>, body: object, dispatcher: Agent) {
  const started = performance.now();
  const response = await request(url, { method: "POST", headers, body: JSON.stringify(body), dispatcher });
  const text = await response.body.text();
  if (response.statusCode !== 200) throw new Error(`${url} answered ${response.statusCode}: ${text}`);
  return performance.now() - started;
}

/** The same rows for the same numbers: random directions of length 1. */
function makeMatrix(from: number, to: number): Float32Array {
  const matrix = new Float32Array((to - from) * dimensions);
  for (let row = from; row < to; row += 1) {
    const random = seededRandom(row + 1);
    const start = (row - from) * dimensions;
    let squares = 0;
    for (let i = 0; i < dimensions; i += 1) {
      const value = random() - 0.5;
      matrix[start + i] = value;
      squares += value * value;
    }
    const length = Math.sqrt(squares);
    for (let i = 0; i < dimensions; i += 1) matrix[start + i] = (matrix[start + i] ?? 0) / length;
  }
  return matrix;
}

/** The bare exact search by usearch; a call answers its time in ms. */
function makeScan(matrix: Float32Array, rows: number): (query: Float32Array) => number {
  const usearch = createRequire(import.meta.url)("usearch");
  const run = usearch.exactSearch as (...args: unknown[]) => unknown;
  if (matrix.length !== rows * dimensions) throw new Error("the matrix has not the rows that it should");
  return (query) => {
    const started = performance.now();
    run(matrix, query, dimensions, topK, usearch.MetricKind.Cos, 1);
    return performance.now() - started;
  };
}

/** Writes chunks straight into the store, as ingestion would leave them: a document of 1,000 live chunks each. */
async function loadChunks(stack: Stack, from: number, to: number): Promise<void> {
  const { db, close } = await connectStore({ url: stack.mongoUrl, db: "switchyard", timeoutMs: 60_000 });
  try {
    const tenant = await db.collection("tenants").findOne({ name: "default" });
    if (!tenant) throw new Error("the bench's tenant is missing");
    const now = new Date();
    for (let start = from; start < to; start += 1_000) {
      const documentId = newId("document");
      await db.collection<{ _id: string }>("documents").insertOne({
        _id: documentId,
        tenantId: String(tenant._id),
        title: `rows from ${start}`,
        status: "indexed",
        version: 1,
        chunks: 1_000,
        vectorSpace: `switchyard-offline-embedding:${dimensions}`,
        source: { kind: "content" },
        metadata: {},
        createdAt: now,
        updatedAt: now,
      } as never); // the document store's shape, written here by hand to spare 100,000 real ingestions
      const matrix = makeMatrix(start, start + 1_000);
      const chunks = Array.from({ length: 1_000 }, (_, n) => ({
        _id: `${documentId}:1:${n}`,
        tenantId: String(tenant._id),
        documentId,
        version: 1,
        live: true,
        title: `rows from ${start}`,
        n,
        content: `row ${start + n} `.repeat(60),
        tokens: 180,
        model: "switchyard-offline-embedding",
        embedding: Binary.fromFloat32Array(matrix.slice(n * dimensions, (n + 1) * dimensions)),
      }));
      await db.collection<{ _id: string }>("chunks").insertMany(chunks as never);
    }
  } finally {
    await close();
  }
}
