import { setTimeout as delay } from "node:timers/promises";
import type { DocumentInterface } from "@langchain/core/documents";
import type { UsageMetadata } from "@langchain/core/messages";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { type Passage, SwitchyardRetriever } from "../../examples/retriever.ts";
import type { DemoClient } from "./client.ts";

/** Columns that a text may take: those of the terminal, within what reads well. */
const width = () => Math.min(process.stdout.columns ?? 92, 92);
/** Characters of a passage that are shown. */
const EXCERPT = 320;
const questions = [
  "What is a virtual package?",
  "What is the purpose of /srv?",
  "What must I do when I convey a modified source version under the GPL?",
];

/** Longest wait for one answer, in ms. */
const TIMEOUT_MS = 60_000;

/** Switchyard as LangChain sees it: a retriever on `/rag/query`, a chat and embeddings on `/v1`. */
export function openLangChain({ url, apiKey }: { url: string; apiKey: string }, embeddingModel: string) {
  const options = { apiKey, timeout: TIMEOUT_MS, configuration: { baseURL: `${url}/v1` } };
  return {
    retriever: new SwitchyardRetriever({ url, apiKey, topK: 3 }),
    chat: new ChatOpenAI({ ...options, model: "meta-llm", streamUsage: true }),
    embeddings: new OpenAIEmbeddings({ ...options, model: embeddingModel }),
  };
}
type LangChain = ReturnType<typeof openLangChain>;
type Usage = Partial<UsageMetadata>;

/** Three questions by the retriever: for each the best passage, and where it stands. */
export async function askQuestions({ retriever }: LangChain): Promise<void> {
  for (const question of questions) {
    const started = performance.now();
    const [best] = await retriever.invoke(question);
    if (!best) throw new Error(`nothing was found for "${question}"`);
    console.log(`\n  ? ${question} (${Math.round(performance.now() - started)} ms)`);
    console.log(indent(excerpt(best.pageContent, question)));
    console.log(`    - ${cut(whereOf(best), width() - 24)}, score ${best.metadata.score.toFixed(3)}`);
  }
}

/** The questions as vectors, by `/v1/embeddings`. */
export async function embedQuestions({ embeddings }: LangChain): Promise<void> {
  const vectors = await embeddings.embedDocuments(questions);
  console.log(`\n  ${vectors.length} questions → vectors of ${vectors[0]?.length} numbers`);
}

/** One question to the chat model, with the passages that were retrieved for it. */
export async function chatWithPassages(langChain: LangChain): Promise<void> {
  const question = "Which permissions does the GPL give to run the unmodified program?";
  const { text, usage_metadata } = await langChain.chat.invoke(await toMessages(langChain, question));
  const usage: Usage = usage_metadata ?? {};
  console.log(`\n  ? ${question}`);
  console.log(indent(text));
  console.log(`    - ${usage.input_tokens} input tokens, ${usage.output_tokens} output tokens`);
}

/** One answer as a stream, printed as it comes. */
export async function streamResponse(langChain: LangChain): Promise<void> {
  const question = "What does /srv contain?";
  const started = performance.now();
  let firstMs: number | undefined;
  console.log(`\n  ? ${question}`);
  process.stdout.write("    ");
  let column = 4;
  let tokens = 0;
  for await (const part of await langChain.chat.stream(await toMessages(langChain, question))) {
    firstMs ??= performance.now() - started;
    const usage: Usage = part.usage_metadata ?? {};
    tokens += usage.output_tokens ?? 0;
    const text = part.text.replace(/\s+/g, " ");
    if (column + text.length > width()) {
      process.stdout.write("\n   ");
      column = 3;
    }
    process.stdout.write(text);
    column += text.length;
    await delay(8); // the offline model is too quick to watch
  }
  if (firstMs === undefined) throw new Error("the stream ended without an answer");
  console.log(`\n    - first word after ${Math.round(firstMs)} ms, ${tokens} output tokens`);
}

/** A job's life as a client sees it by polling. */
export async function showJobLife(client: DemoClient, document: { name: string; bytes: Uint8Array<ArrayBuffer> }) {
  const jobId = await client.ingest(`again-${document.name}`, document.bytes);
  console.log(`\n  POST /rag/ingest, Prefer: respond-async  →  202 ${jobId}`);
  let last = "";
  for (;;) {
    const { status, progress, result } = await client.job(jobId);
    const isMoving = status === "running" && progress.total > 0;
    const detail = isMoving ? `${progress.stage} ${progress.done}/${progress.total}` : "";
    const line = `${status.padEnd(9)} ${result ? `${result.chunks} chunks of ${result.documentId}` : detail}`;
    if (line !== last) console.log(`  GET /jobs/…  →  ${line.trimEnd()}`);
    last = line;
    if (status === "completed") return;
    if (status === "failed" || status === "cancelled") throw new Error(`the job ended ${status}`);
    await delay(40);
  }
}

async function toMessages({ retriever }: LangChain, question: string) {
  const passages = await retriever.invoke(question);
  const context = passages.map((hit) => `[${whereOf(hit)}]\n${hit.pageContent}`).join("\n\n");
  return [
    { role: "system", content: `Answer from these passages only.\n\n${context}` },
    { role: "user", content: question },
  ];
}

function whereOf({ metadata: { title, page, heading } }: DocumentInterface<Passage>): string {
  return [title, page === undefined ? "" : `page ${page}`, heading ?? ""].filter((part) => part !== "").join(", ");
}

/** The part of a passage around the word of the question that it says last, which is mostly the rarest one. */
function excerpt(text: string, question: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  const words = question.match(/\/?[\p{L}\p{N}]{3,}/gu) ?? [];
  const at = Math.max(0, ...words.map((word) => line.toLowerCase().indexOf(word.toLowerCase())));
  const from = at < EXCERPT / 2 ? 0 : line.lastIndexOf(" ", at - EXCERPT / 3) + 1;
  const part = line.slice(from, from + EXCERPT);
  const isCut = from + EXCERPT < line.length;
  return `${from > 0 ? "… " : ""}${isCut ? `${part.replace(/\s\S*$/, "")} …` : part}`;
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 2).trimEnd()} …`;
}

/** Wraps a text at the width of the demo, indented. */
function indent(text: string): string {
  const lines = [""];
  for (const word of text.replace(/\s+/g, " ").trim().split(" ")) {
    const line = lines.at(-1) ?? "";
    if (line.length + word.length + 5 > width()) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines.map((line) => `    ${line}`).join("\n");
}
