import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { runWorker } from "../../workers/main.ts";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** The product's worker, which answers a message with the memory that it has once its garbage is collected. */
process.on("message", async () => {
  collect();
  await delay(100); // until what has to be tidied up after the first collection is
  collect();
  process.send?.(process.memoryUsage());
});
await runWorker();
