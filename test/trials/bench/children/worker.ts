import { runWorker } from "../../../../workers/main.ts";
import { noopWork } from "./noop.ts";

/** The product's worker, with the no-op job added. */
await runWorker([noopWork]);
