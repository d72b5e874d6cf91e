import { runWorker } from "../../../workers/main.ts";
import { noopWork } from "./noop.ts";
import { answerUsage } from "./usage.ts";
import { answerWorkUsage } from "./work-usage.ts";

/** The product's worker, with the no-op job added; with the argument `count-work` it counts what it sends to store and Redis. */
answerUsage();
if (process.argv.includes("count-work")) answerWorkUsage();
await runWorker([noopWork]);
