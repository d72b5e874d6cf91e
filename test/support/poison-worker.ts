import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineWork } from "../../src/jobs/work.ts";
import { runWorker } from "../../workers/main.ts";
import { pollUntil } from "./poll-until.ts";
import { scriptedQueue, withoutRecords } from "./scripted-queue.ts";

const { HARMLESS = "", MEET_IN } = process.env;
const harmless = HARMLESS.split(",");

/**
 * The product's worker, with a work that ends its process as a crash would. Jobs whose ids are named in `HARMLESS` end well,
 * with `MEET_IN` (a folder) once all of them run at the same time.
 */
await runWorker([
  defineWork({
    queue: { ...scriptedQueue, timeoutMs: 60_000 }, // some wait until others have started their process
    idField: "jobId",
    async run({ jobId }) {
      if (!harmless.includes(jobId)) process.kill(process.pid, "SIGKILL");
      if (MEET_IN) await meet(MEET_IN, jobId);
      return { alone: process.argv.includes("--lone-job") };
    },
    ...withoutRecords,
  }),
]);

async function meet(folder: string, jobId: string): Promise<void> {
  await writeFile(join(folder, jobId), "");
  const isComplete = async () => (await readdir(folder)).length === harmless.length;
  await pollUntil(isComplete, { timeoutMs: 40_000, what: "the other jobs" });
}
