import { RecursiveCharacterTextSplitter } from "@langchain/textsplitters";
import { Binary, serialize } from "bson";
import { countTokens } from "gpt-tokenizer";
import { request } from "undici";
import { embedOffline } from "../../../src/gateway/providers/edge/offline-embed.ts";
import { format, type Measured } from "./goals.ts";
import { median, runConcurrently, seededRandom } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

/** A round takes little more than a second, and one differs from the next by a tenth. */
const rounds = 8;
const files = 24;
const fileCharacters = 200_000;

/**
 * Chunks per second through the product (submitted over HTTP, one worker, offline embedding, until every document is
 * indexed) against the stages nobody can do without, run bare over the same files: split, count, embed, encode as BSON.
 */
export async function ingestionBench(): Promise<Measured[]> {
  const stack = await openStack({ workers: 1 });
  try {
    const bare: number[] = [];
    const product: number[] = [];
    const warmUp = makeFiles(0); // as many as a round has: a bulk load is far longer than what compiling takes
    await bareChunksPerSecond(warmUp);
    await ingestAll(stack, warmUp);
    for (let round = 1; round <= rounds; round += 1) {
      const texts = makeFiles(round);
      bare.push(await bareChunksPerSecond(texts));
      const started = performance.now();
      const chunks = await ingestAll(stack, texts);
      product.push((chunks / (performance.now() - started)) * 1_000);
    }
    return [
      {
        what: "ingestion, chunks/s, offline embedding, one worker",
        anchor: `split + count + embed + encode ${format(median(bare))}/s`,
        product: `${format(median(product))}/s`,
        value: median(product) / median(bare),
        must: 0.25,
        aim: 0.6,
        isMoreBetter: true,
        unit: "×",
      },
    ];
  } finally {
    await stack.close();
  }
}

/** Texts of English-like prose in paragraphs, other ones each round, so that nothing can be reused between rounds. */
function makeFiles(round: number): string[] {
  const random = seededRandom(round + 1);
  const words = [
    "queue",
    "worker",
    "the",
    "of",
    "a",
    "retrieval",
    "document",
    "is",
    "and",
    "index",
    "lease",
    "to",
    "in",
  ];
  const word = () => {
    const known = words[Math.floor(random() * words.length * 2)];
    return known ?? `term${Math.floor(random() * 20_000).toString(36)}`;
  };
  const sentence = () => `${Array.from({ length: 8 + Math.floor(random() * 14) }, word).join(" ")}. `;
  return Array.from({ length: files }, () => {
    let text = "";
    while (text.length < fileCharacters) text += `${Array.from({ length: 5 }, sentence).join("")}\n\n`;
    return text;
  });
}

/** The bare stages over the same texts, in this process; chunks per second. */
async function bareChunksPerSecond(texts: readonly string[]): Promise<number> {
  const splitter = new RecursiveCharacterTextSplitter({ chunkSize: 1_600, chunkOverlap: 240 });
  let chunks = 0;
  const started = performance.now();
  for (const text of texts) {
    const parts = await splitter.splitText(text);
    const embeddings = embedOffline(parts);
    for (const [n, content] of parts.entries()) {
      const vector = embeddings[n];
      if (!vector) throw new Error("the embedding is missing");
      serialize({ n, content, tokens: countTokens(content), embedding: Binary.fromFloat32Array(vector) });
    }
    chunks += parts.length;
  }
  return (chunks / (performance.now() - started)) * 1_000;
}

/** Submits all texts and waits for all their jobs; the number of chunks that were indexed. */
async function ingestAll(stack: Stack, texts: readonly string[]): Promise<number> {
  const jobs: string[] = [];
  await runConcurrently(texts.length, 8, async (index) => {
    const response = await request(`${stack.url}/rag/ingest`, {
      method: "POST",
      headers: { ...stack.headers, prefer: "respond-async" },
      body: JSON.stringify({ content: texts[index], title: `file ${index}` }),
    });
    const body = (await response.body.json()) as { jobId?: string };
    if (response.statusCode !== 202 || !body.jobId) throw new Error(`ingest answered ${response.statusCode}`);
    jobs.push(body.jobId);
  });
  let chunks = 0;
  await runConcurrently(jobs.length, 1, async (index) => {
    const indexed = await chunksOf(stack, jobs[index] ?? "");
    chunks += indexed;
  });
  return chunks;
}

/** Polls a job until it has ended; the chunks that it reports. */
async function chunksOf(stack: Stack, jobId: string): Promise<number> {
  const deadline = performance.now() + 300_000;
  while (performance.now() < deadline) {
    const response = await request(`${stack.url}/jobs/${jobId}`, { headers: stack.headers });
    const job = (await response.body.json()) as { status: string; result?: { chunks: number } };
    if (job.status === "completed" && job.result) return job.result.chunks;
    if (job.status === "failed") throw new Error(`job ${jobId} failed`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`job ${jobId} has not ended`);
}
