import { readFile } from "node:fs/promises";
import { request } from "undici";
import type { Measured } from "./goals.ts";
import { runConcurrently } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

const data = new URL("../../../shared/data/ir/", import.meta.url);
const collections = ["cranfield", "med"] as const;
const modes = ["lexical", "vector", "hybrid"] as const;
const depth = 10;
/** Chunks asked for; folded to documents, they are enough for the first ten. */
const topK = 100;
/** What is measured is the order of results, not time: a busy machine shall not end it. */
const patient = { STORE_TIMEOUT_MS: "60000" };
const INGESTS_AT_ONCE = 4;

type Quality = { ndcg10: number; recall10: number; mrr10: number };
type Judged = { queries: { id: string; text: string }[]; gains: Map<string, Map<string, number>> };

/**
 * Quality of retrieval with the offline embedding on judged collections: one ingest a document through the queue, every
 * query in every mode, chunk hits folded to documents, beside a plain BM25 of whole documents. Each collection has a stack
 * of its own, so that the words of one do not weigh in the other.
 */
export async function retrievalBench(): Promise<Measured[]> {
  const baseline = JSON.parse(await readFile(new URL("bm25-baseline.json", data), "utf8")) as Record<string, Quality>;
  const lines: Measured[] = [];
  for (const name of collections) {
    const bm25 = baseline[name];
    if (!bm25) throw new Error(`bm25-baseline.json lacks ${name}`);
    const found = await measureCollection(name);
    printTable(name, { "plain BM25": bm25, ...found });
    lines.push({
      what: `retrieval, nDCG@10 of hybrid, ${name}`,
      anchor: `plain BM25 ${bm25.ndcg10.toFixed(4)}`,
      product: `${found.hybrid.ndcg10.toFixed(4)} (lexical ${found.lexical.ndcg10.toFixed(4)}, vector ${found.vector.ndcg10.toFixed(4)})`,
      value: found.hybrid.ndcg10 / bm25.ndcg10,
      must: 1,
      aim: 1.05,
      isMoreBetter: true,
      unit: "×",
    });
  }
  return lines;
}

async function measureCollection(name: string): Promise<Record<(typeof modes)[number], Quality>> {
  const stack = await openStack({ workers: 1, env: patient });
  try {
    const documentOf = await ingestCollection(stack, name);
    const judged = await readJudged(name);
    const of = async (mode: string) => average(await rankAll(stack, judged, { mode, documentOf }), judged);
    return { lexical: await of("lexical"), vector: await of("vector"), hybrid: await of("hybrid") };
  } finally {
    await stack.close();
  }
}

/** Ingests every document of a collection; answers the collection's own id of each of ours. */
async function ingestCollection(stack: Stack, name: string): Promise<Map<string, string>> {
  const documents = (await readLines(name, "docs.jsonl")).map(
    (line) => JSON.parse(line) as { id: string; title: string; text: string },
  );
  const documentOf = new Map<string, string>();
  await runConcurrently(documents.length, INGESTS_AT_ONCE, async (index) => {
    const { id, title, text } = documents[index] ?? { id: "", title: "", text: "" };
    const response = await request(`${stack.url}/rag/ingest`, {
      method: "POST",
      headers: { ...stack.headers, prefer: "wait=120" },
      body: JSON.stringify({ title: title || `document ${id}`, content: `${title}\n\n${text}` }),
    });
    const body = (await response.body.json()) as { documentId?: string };
    if (response.statusCode !== 201 || !body.documentId)
      throw new Error(`ingest of ${name} ${id} answered ${response.statusCode}: ${JSON.stringify(body)}`);
    documentOf.set(body.documentId, id);
  });
  return documentOf;
}

async function readJudged(name: string): Promise<Judged> {
  const queries = (await readLines(name, "queries.jsonl")).map(
    (line) => JSON.parse(line) as { id: string; text: string },
  );
  const gains = new Map<string, Map<string, number>>();
  for (const line of (await readLines(name, "qrels.tsv")).slice(1)) {
    const [query = "", document = "", gain = "0"] = line.split("\t");
    const ofQuery = gains.get(query) ?? new Map<string, number>();
    gains.set(query, ofQuery.set(document, Number(gain)));
  }
  return { queries, gains };
}

async function readLines(name: string, file: string): Promise<string[]> {
  return (await readFile(new URL(`${name}/${file}`, data), "utf8")).split("\n").filter((line) => line.length > 0);
}

/** For each query the collection's documents in the order of their best chunk. */
async function rankAll(
  stack: Stack,
  { queries }: Judged,
  { mode, documentOf }: { mode: string; documentOf: Map<string, string> },
): Promise<Map<string, string[]>> {
  const ranked = new Map<string, string[]>();
  await runConcurrently(queries.length, 2, async (index) => {
    const query = queries[index];
    if (!query) return;
    const response = await request(`${stack.url}/rag/query`, {
      method: "POST",
      headers: stack.headers,
      body: JSON.stringify({ query: query.text, topK, mode }),
    });
    const body = (await response.body.json()) as { results?: { documentId: string }[] };
    if (!body.results) throw new Error(`a query answered ${response.statusCode}: ${JSON.stringify(body)}`);
    const documents = body.results.map(({ documentId }) => documentOf.get(documentId) ?? "");
    ranked.set(query.id, [...new Set(documents)].slice(0, depth));
  });
  return ranked;
}

/**
 * Means over the judged queries, at 10: nDCG with gains of 2^grade - 1, recall of at most ten, and reciprocal rank. It is how
 * the baseline was measured: BM25 over title, title and text, counting each word of a query once and cutting -ing, -ed, -es
 * and -s, gives its three figures for cranfield to the fourth digit with these, and nDCG 0.5169 with linear gains.
 */
function average(ranked: Map<string, string[]>, { queries, gains }: Judged): Quality {
  const sum: Quality = { ndcg10: 0, recall10: 0, mrr10: 0 };
  const judged = queries.filter(({ id }) => gains.has(id));
  for (const { id } of judged) {
    const gainOf = gains.get(id) ?? new Map<string, number>();
    const found = (ranked.get(id) ?? []).map((document) => gainOf.get(document) ?? 0);
    const ideal = [...gainOf.values()].sort((a, b) => b - a).slice(0, depth);
    const first = found.findIndex((gain) => gain > 0);
    sum.ndcg10 += discounted(found) / discounted(ideal);
    sum.recall10 += found.filter((gain) => gain > 0).length / Math.min(depth, gainOf.size);
    sum.mrr10 += first < 0 ? 0 : 1 / (first + 1);
  }
  const mean = (total: number) => total / judged.length;
  return { ndcg10: mean(sum.ndcg10), recall10: mean(sum.recall10), mrr10: mean(sum.mrr10) };
}

function discounted(gains: readonly number[]): number {
  return gains.reduce((sum, gain, index) => sum + (2 ** gain - 1) / Math.log2(index + 2), 0);
}

function printTable(name: string, rows: Record<string, Quality>): void {
  console.log(`\n| ${name} | nDCG@10 | recall@10 | MRR@10 |\n|---|---|---|---|`);
  for (const [mode, { ndcg10, recall10, mrr10 }] of Object.entries(rows)) {
    console.log(`| ${mode} | ${ndcg10.toFixed(4)} | ${recall10.toFixed(4)} | ${mrr10.toFixed(4)} |`);
  }
}
