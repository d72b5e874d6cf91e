import { defineWork } from "../../src/jobs/work.ts";
import { runWorker } from "../../workers/main.ts";
import { scriptedQueue, withoutRecords } from "./scripted-queue.ts";

/** The product's worker, with a work that ends its process as a crash would; a job whose id is named in `HARMLESS` ends well. */
await runWorker([
  defineWork({
    queue: scriptedQueue,
    idField: "jobId",
    async run({ jobId }) {
      if (jobId !== process.env.HARMLESS) process.kill(process.pid, "SIGKILL");
      return { alone: process.argv.includes("--lone-job") };
    },
    ...withoutRecords,
  }),
]);
