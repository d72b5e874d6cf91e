import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { loadConfig } from "../src/config/config.ts";
import {
  askQuestions,
  chatWithPassages,
  embedQuestions,
  openLangChain,
  showJobLife,
  streamResponse,
} from "./demo/ask-questions.ts";
import { makeClient } from "./demo/client.ts";
import { findDocuments, loadDocuments } from "./demo/load-documents.ts";
import { type LocalStack, runStack } from "./start/run-stack.ts";

const program = new Command("demo")
  .description("the main job end to end on real documents, on a throw-away data folder")
  .option("--keep", "leave everything running afterwards, until Ctrl-C");

/** Exit code of a command that Ctrl-C ended. */
const INTERRUPTED = 130;

/** `npm run demo`: exit code 0 when every part did what it should, 1 when not, 130 when Ctrl-C ended it before. */
async function demo(options: { keep?: boolean }): Promise<void> {
  const started = performance.now();
  const interrupted = untilInterrupted();
  const dataDir = await mkdtemp(join(tmpdir(), "switchyard-demo-"));
  const config = loadConfig({ ...process.env, DATA_DIR: dataDir, PORT: process.env.PORT ?? "0", WORKERS: "2" });
  try {
    title("Start", `data in ${dataDir}, removed at the end`);
    const stack = await runStack(config, {
      say: (text) => console.log(`  ${text}`),
      env: { PORT: String(config.http.port) },
    });
    try {
      console.log(`  up at ${stack.url} after ${seconds(started)}`);
      const shown = show(stack).then(() => true);
      if (await Promise.race([shown, interrupted])) {
        console.log(`\nDone in ${seconds(started)}.`);
        if (options.keep) await keepRunning(stack, interrupted);
        else console.log("Everything of it is removed now. To work with it yourself: npm start");
      } else {
        shown.catch(() => undefined); // what still runs of it fails once the stack is closed
        console.log("\nstopping …");
        process.exitCode = INTERRUPTED;
      }
    } finally {
      await stack.close();
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

async function show(stack: LocalStack): Promise<void> {
  const client = makeClient(stack.url, stack.apiKey);
  const documents = await findDocuments();
  title("Load", `${documents.length} real documents through the queue, by ${stack.workers} workers`);
  const started = performance.now();
  const loaded = await loadDocuments(client, documents);
  const failed = loaded.filter(({ job }) => job.status !== "completed");
  if (failed.length > 0) throw new Error(`not indexed: ${failed.map(({ name }) => name).join(", ")}`);
  const chunks = loaded.reduce((sum, { job }) => sum + (job.result?.chunks ?? 0), 0);
  const wallMs = performance.now() - started;
  console.log(`\n  ${chunks} chunks in ${(wallMs / 1_000).toFixed(1)} s (${Math.round((chunks / wallMs) * 1_000)}/s)`);
  const langChain = openLangChain(stack, await client.embeddingModel());
  title("Ask", "three questions by LangChain's retriever on POST /rag/query, hybrid of vectors and BM25");
  await askQuestions(langChain);
  title("Chat", "ChatOpenAI on /v1 with the retrieved passages");
  await chatWithPassages(langChain);
  title("Stream", "the same as server-sent events");
  await streamResponse(langChain);
  title("Embed", "OpenAIEmbeddings on /v1");
  await embedQuestions(langChain);
  title("Follow", "a job's life by polling");
  const largest = documents.toSorted((a, b) => b.bytes.length - a.bytes.length)[0];
  if (largest) await showJobLife(client, largest);
}

async function keepRunning(
  { url, apiKey, boardUrl, adminToken }: LocalStack,
  interrupted: Promise<unknown>,
): Promise<void> {
  console.log(`\nStill running at ${url}, in a browser the console\n  export KEY=${apiKey}`);
  console.log(`  Bull Board: ${boardUrl}, any user, password ${adminToken}\nCtrl-C stops it and removes its data.`);
  const keepAlive = setInterval(() => undefined, 60_000);
  await interrupted;
  clearInterval(keepAlive);
}

/** From now on Ctrl-C does not end the process, so that what was started is closed and removed; false when it came. */
async function untilInterrupted(): Promise<false> {
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  return false;
}

function title(name: string, text: string): void {
  console.log(`\n${name}: ${text}`);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1_000).toFixed(1)} s`;
}

try {
  await demo(program.parse().opts<{ keep?: boolean }>());
} catch (error) {
  console.error(`\nThe demo failed: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
