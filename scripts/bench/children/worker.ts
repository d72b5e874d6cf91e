import { runWorker } from "../../../workers/main.ts";
import { noopWork } from "./noop.ts";
import { answerUsage } from "./usage.ts";

/** The product's worker, with the no-op job added. */
answerUsage();
await runWorker([noopWork]);
