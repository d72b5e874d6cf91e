import { setTimeout as delay } from "node:timers/promises";
import type { DemoClient, Hit } from "./client.ts";

/** Columns that a text may take: those of the terminal, within what reads well. */
const width = () => Math.min(process.stdout.columns ?? 92, 92);
/** Characters of a passage that are shown. */
const EXCERPT = 320;
const questions = [
  "What is a virtual package?",
  "What is the purpose of /srv?",
  "What must I do when I convey a modified source version under the GPL?",
];

/** Three questions by `/rag/query`: for each the best passage, and where it stands. */
export async function askQuestions(client: DemoClient): Promise<void> {
  for (const question of questions) {
    const started = performance.now();
    const hits = await client.query(question, 3);
    const best = hits[0];
    if (!best) throw new Error(`nothing was found for "${question}"`);
    console.log(`\n  ? ${question} (${Math.round(performance.now() - started)} ms)`);
    console.log(indent(excerpt(best.content, question)));
    console.log(`    - ${cut(whereOf(best), width() - 24)}, score ${best.score.toFixed(3)}`);
  }
}

/** One question to `/ai/chat`, with the passages that were retrieved for it. */
export async function chatWithPassages(client: DemoClient): Promise<void> {
  const question = "Which permissions does the GPL give to run the unmodified program?";
  const response = await client.chat(await toMessages(client, question));
  console.log(`\n  ? ${question}`);
  console.log(indent(response.text));
  console.log(`    - ${response.inputTokens} input tokens, ${response.costUsd} USD`);
}

/** One answer as a stream, printed as it comes. */
export async function streamResponse(client: DemoClient): Promise<void> {
  const question = "What does /srv contain?";
  const started = performance.now();
  let firstMs: number | undefined;
  console.log(`\n  ? ${question}`);
  process.stdout.write("    ");
  let column = 4;
  for await (const event of client.stream(await toMessages(client, question))) {
    firstMs ??= performance.now() - started;
    if (event.done === true) {
      console.log(
        `\n    - first word after ${Math.round(firstMs)} ms, ${event.outputTokens} output tokens\n    - ${event.logId}`,
      );
      return;
    }
    const text = (event.delta as { content: string }).content.replace(/\s+/g, " ");
    if (column + text.length > width()) {
      process.stdout.write("\n   ");
      column = 3;
    }
    process.stdout.write(text);
    column += text.length;
    await delay(8); // the offline model is too quick to watch
  }
  throw new Error("the stream ended without its final event");
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

async function toMessages(client: DemoClient, question: string) {
  const passages = await client.query(question, 3);
  const context = passages.map((hit) => `[${whereOf(hit)}]\n${hit.content}`).join("\n\n");
  return [
    { role: "system", content: `Answer from these passages only.\n\n${context}` },
    { role: "user", content: question },
  ];
}

function whereOf({ title, page, heading }: Hit): string {
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
