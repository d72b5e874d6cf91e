import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { MultiBar, Presets, type SingleBar } from "cli-progress";
import type { DemoClient, JobView } from "./client.ts";

/** Ten documents at this pace stay within a tenant's rate for about a minute; after that the client waits as the response asks. */
const POLL_MS = 500;
const NAME_WIDTH = 38;
/** Columns of a line besides its bar: indentation, name, spaces, and the longest stage. */
const TEXT_WIDTH = NAME_WIDTH + 24;
const BAR_WIDTH = 24;
/** Longest time for loading the documents of a call, in ms, unless it says otherwise. */
const LOAD_TIMEOUT_MS = 180_000;

export type Loaded = { name: string; bytes: number; job: JobView };

/** The demo's documents: the files beside it and the project's README. */
export async function findDocuments(): Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }[]> {
  const folder = fileURLToPath(new URL("./documents/", import.meta.url));
  const paths = (await readdir(folder)).sort().map((name) => join(folder, name));
  paths.push(fileURLToPath(new URL("../../README.md", import.meta.url)));
  return Promise.all(
    paths.map(async (path) => ({ name: basename(path), bytes: new Uint8Array(await readFile(path)) })),
  );
}

/** Submits all documents at once and shows how far each is, until all have ended. */
export async function loadDocuments(
  client: DemoClient,
  documents: readonly { name: string; bytes: Uint8Array<ArrayBuffer> }[],
  { timeoutMs = LOAD_TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<Loaded[]> {
  const isTerminal = process.stderr.isTTY === true;
  const bars = new MultiBar(
    {
      format: `  {name} {bar} {stage}`,
      barsize: Math.max(8, Math.min(BAR_WIDTH, (process.stderr.columns ?? 100) - TEXT_WIDTH)),
      hideCursor: true,
      clearOnComplete: false,
      emptyOnZero: true,
      noTTYOutput: false,
      forceRedraw: true,
    },
    Presets.shades_classic,
  );
  try {
    return await Promise.all(
      documents.map(async ({ name, bytes }) => {
        const payload = { name: name.padEnd(NAME_WIDTH), stage: "submitting" };
        const bar = isTerminal ? bars.create(1, 0, payload) : undefined;
        const jobId = await client.ingest(name, bytes);
        const job = await followToEnd(client, { jobId, timeoutMs }, bar);
        if (!isTerminal) console.log(`  ${name.padEnd(NAME_WIDTH)} ${summary(job)}`);
        return { name, bytes: bytes.length, job };
      }),
    );
  } finally {
    bars.stop();
  }
}

async function followToEnd(
  client: DemoClient,
  { jobId, timeoutMs }: { jobId: string; timeoutMs: number },
  bar: SingleBar | undefined,
): Promise<JobView> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const job = await client.job(jobId);
    const { stage, done, total } = job.progress;
    const isEnded = ["completed", "failed", "cancelled"].includes(job.status);
    bar?.setTotal(Math.max(total, 1));
    bar?.update(isEnded ? Math.max(total, 1) : done, {
      stage: isEnded ? summary(job) : total === 0 ? job.status : `${stage} ${done}/${total}`,
    });
    if (isEnded) return job;
    if (performance.now() > deadline) throw new Error(`job ${jobId} has not ended in time`);
    await delay(POLL_MS);
  }
}

function summary(job: JobView): string {
  if (job.status === "completed")
    return `indexed, ${job.result?.chunks} ${job.result?.chunks === 1 ? "chunk" : "chunks"}`;
  return `${job.status}: ${job.error?.message ?? ""}`;
}
