import { readdir, readFile } from "node:fs/promises";
import { request } from "undici";
import type { Measured } from "./goals.ts";
import { runConcurrently, seededRandom } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

const manuals = new URL("../../../docs/", import.meta.url);
/** Judged collections, and the nDCG@10 of hybrid that each is to reach. */
const collections = { cranfield: 0.57, med: 0.775 } as const;
type Name = keyof typeof collections;
const modes = ["lexical", "vector", "hybrid"] as const;
/** A store that has only the collection, and one in which three others were loaded and deleted before. */
const histories = ["fresh", "after others"] as const;
const depth = 10;
/** Chunks asked for; folded to documents, they are enough for the first ten. */
const topK = 100;
/** What is measured is the order of results, not time: a busy machine shall not end it. */
const patient = { STORE_TIMEOUT_MS: "60000" };
const CALLS_AT_ONCE = 4;
/** How long one collection's documents may take until all are indexed, in ms; on a quiet machine it is half a minute. */
const INDEXED_WITHIN_MS = 20 * 60_000;
const POLL_MS = 500;
/** Texts of the set that is made up, and the words of each. */
const MADE_UP = { texts: 500, words: 120 };

type Quality = { ndcg10: number; recall10: number; mrr10: number };
type Found = Record<(typeof modes)[number], Quality>;
type Judged = { queries: { id: string; text: string }[]; gains: Map<string, Map<string, number>> };
type Text = { id: string; title: string; text: string };

/**
 * Quality of retrieval with the offline embedding on judged collections: every document through the queue, every query in
 * every mode, chunk hits folded to documents, beside a plain BM25 of whole documents. Each collection has a stack of its own,
 * so that the words of one do not weigh in the other, and a second one in which others were loaded and deleted before.
 * `data` is a folder with `bm25-baseline.json` and, for each collection, `docs.jsonl`, `queries.jsonl` and `qrels.tsv`.
 */
export async function retrievalBench(data: URL): Promise<Measured[]> {
  const baseline = JSON.parse(await readFile(new URL("bm25-baseline.json", data), "utf8")) as Record<string, Quality>;
  const lines: Measured[] = [];
  for (const name of Object.keys(collections) as Name[]) {
    const bm25 = baseline[name];
    if (!bm25) throw new Error(`bm25-baseline.json lacks ${name}`);
    for (const history of histories) {
      const found = await measureCollection(data, { name, history });
      printTable(`${name}, ${history}`, { "plain BM25": bm25, ...found });
      lines.push(...toLines(`${name}${history === "fresh" ? "" : `, ${history}`}`, collections[name], { bm25, found }));
    }
  }
  return lines;
}

function toLines(where: string, goal: number, { bm25, found }: { bm25: Quality; found: Found }): Measured[] {
  const [hybrid, lexical] = [found.hybrid.ndcg10, found.lexical.ndcg10];
  const product = `${hybrid.toFixed(4)} (lexical ${lexical.toFixed(4)}, vector ${found.vector.ndcg10.toFixed(4)})`;
  const line = { product, isMoreBetter: true };
  const anchor = `plain BM25 ${bm25.ndcg10.toFixed(4)}`;
  return [
    {
      ...{ ...line, what: `retrieval, nDCG@10 of hybrid, ${where}`, anchor },
      ...{ value: hybrid / Math.max(lexical, bm25.ndcg10), must: 1, aim: 1.05, unit: "×" },
    },
    {
      ...{ ...line, what: `retrieval, nDCG@10 of hybrid against its goal, ${where}`, anchor: `goal ${goal}` },
      ...{ value: hybrid / goal, must: 1, aim: 1, unit: "×" },
    },
  ];
}

async function measureCollection(
  data: URL,
  { name, history }: { name: Name; history: (typeof histories)[number] },
): Promise<Found> {
  const stack = await openStack({ workers: 1, env: patient });
  try {
    if (history === "after others") {
      for (const texts of await readOthers(data, name)) await removeAll(stack, await ingestAll(stack, texts));
    }
    const documentOf = await ingestAll(stack, await readTexts(data, name));
    const judged = await readJudged(data, name);
    const of = async (mode: string) => average(await rankAll(stack, judged, { mode, documentOf }), judged);
    return { lexical: await of("lexical"), vector: await of("vector"), hybrid: await of("hybrid") };
  } finally {
    await stack.close();
  }
}

const readTexts = async (data: URL, name: Name) =>
  (await readLines(data, `${name}/docs.jsonl`)).map((line): Text => JSON.parse(line) as Text);

/** Three sets that have nothing to do with a collection: the other ones, this product's manuals, and texts without a sense. */
async function readOthers(data: URL, name: Name): Promise<Text[][]> {
  const others = (Object.keys(collections) as Name[]).filter((other) => other !== name);
  const pages = (await readdir(manuals)).filter((file) => file.endsWith(".md"));
  const sections = pages.map(async (file) => (await readFile(new URL(file, manuals), "utf8")).split(/^(?=## )/m));
  const random = seededRandom(1);
  const syllables = "ba de fi go lu mer nos pra ske tov wil yan flow wing cell blood".split(" ");
  const word = () => {
    const place = Math.floor(1_500 * random() ** 3);
    return [place % 16, Math.floor(place / 16) % 16].map((at) => syllables[at]).join("");
  };
  const madeUp = Array.from({ length: MADE_UP.texts }, () => Array.from({ length: MADE_UP.words }, word).join(" "));
  const toTexts = (texts: readonly string[]) => texts.map((text, at) => ({ id: String(at), title: "", text }));
  return [
    ...(await Promise.all(others.map((other) => readTexts(data, other)))),
    toTexts((await Promise.all(sections)).flat()),
    toTexts(madeUp),
  ];
}

/** Submits every document, and waits until all are indexed; returns the collection's own id of each of ours. */
async function ingestAll(stack: Stack, texts: readonly Text[]): Promise<Map<string, string>> {
  const documentOf = new Map<string, string>();
  await runConcurrently(texts.length, CALLS_AT_ONCE, async (index) => {
    const { id, title, text } = texts[index] ?? { id: "", title: "", text: "" };
    const content = { title: title || `document ${id}`, content: `${title}\n\n${text}` };
    const body = await call(stack, "POST", "/rag/ingest", { body: content, prefer: "respond-async" });
    documentOf.set(String(body.documentId), id);
  });
  const deadline = performance.now() + INDEXED_WITHIN_MS;
  while ((await hasAny(stack, "queued")) || (await hasAny(stack, "processing"))) {
    if (performance.now() > deadline) throw new Error(`${texts.length} documents were not indexed in time`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  if (await hasAny(stack, "failed")) throw new Error("a document could not be indexed");
  return documentOf;
}

async function hasAny(stack: Stack, status: string): Promise<boolean> {
  const found = await call(stack, "GET", `/rag/documents?status=${status}&limit=1`);
  return Array.isArray(found) && found.length > 0;
}

/** Calls the API; returns the JSON of its response. @throws Error for a response that is not a success. */
async function call(
  { url, headers }: Stack,
  method: "GET" | "POST" | "DELETE",
  path: string,
  { body, prefer }: { body?: object; prefer?: string } = {},
): Promise<Record<string, unknown>> {
  const response = await request(`${url}${path}`, {
    method,
    headers: { ...headers, ...(prefer === undefined ? {} : { prefer }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.body.text();
  if (response.statusCode >= 300) throw new Error(`${method} ${path} responded ${response.statusCode}: ${text}`);
  return text === "" ? {} : JSON.parse(text);
}

async function removeAll(stack: Stack, documentOf: ReadonlyMap<string, string>): Promise<void> {
  const ids = [...documentOf.keys()];
  await runConcurrently(ids.length, CALLS_AT_ONCE, (index) => call(stack, "DELETE", `/rag/documents/${ids[index]}`));
}

async function readJudged(data: URL, name: Name): Promise<Judged> {
  const queries = (await readLines(data, `${name}/queries.jsonl`)).map(
    (line) => JSON.parse(line) as { id: string; text: string },
  );
  const gains = new Map<string, Map<string, number>>();
  for (const line of (await readLines(data, `${name}/qrels.tsv`)).slice(1)) {
    const [query = "", document = "", gain = "0"] = line.split("\t");
    const ofQuery = gains.get(query) ?? new Map<string, number>();
    gains.set(query, ofQuery.set(document, Number(gain)));
  }
  return { queries, gains };
}

async function readLines(data: URL, file: string): Promise<string[]> {
  return (await readFile(new URL(file, data), "utf8")).split("\n").filter((line) => line.length > 0);
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
    const { results } = await call(stack, "POST", "/rag/query", { body: { query: query.text, topK, mode } });
    const documents = (results as { documentId: string }[]).map(({ documentId }) => documentOf.get(documentId) ?? "");
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
