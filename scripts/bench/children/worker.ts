import { runProcess } from "../../../src/run-process.ts";
import { openWorker } from "../../../workers/main.ts";
import { noopQueue } from "./noop.ts";

/** The product's worker, with the no-op job added. */
await runProcess(() => openWorker([{ queue: noopQueue, handler: async () => ({ ok: true }) }]));
