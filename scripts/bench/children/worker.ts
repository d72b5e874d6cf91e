import { runProcess } from "../../../src/run-process.ts";
import { openWorker } from "../../../workers/main.ts";
import { noopQueue } from "./noop.ts";
import { answerUsage } from "./usage.ts";

/** The product's worker, with the no-op job added. */
answerUsage();
await runProcess(() => openWorker([{ queue: noopQueue, handler: async () => ({ ok: true }) }]));
