import { setTimeout as delay } from "node:timers/promises";
import { type Child, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { residentMb } from "./process-usage.ts";
import { openStack } from "./stack.ts";

const settleMs = 8_000;

/** Resident memory of an idle API and an idle worker, each against a process that only has the same libraries open. */
export async function memoryBench(): Promise<Measured[]> {
  const stack = await openStack({ workers: 1 });
  const anchor = (role: string) =>
    startChild("./children/idle-anchor.ts", {
      args: [role],
      env: { REDIS_URL: stack.redisUrl, MONGODB_URL: stack.mongoUrl },
    });
  const [apiAnchor, workerAnchor] = await Promise.all([anchor("api"), anchor("worker")]);
  try {
    await delay(settleMs); // what is measured is the state after start-up's garbage is gone
    const worker = stack.workers[0];
    if (!worker) throw new Error("the stack has no worker");
    return [
      await line("memory of an idle API", { product: stack.api, anchor: apiAnchor, must: 2, aim: 1.4 }),
      await line("memory of an idle worker", { product: worker, anchor: workerAnchor, must: 1.3, aim: 1.1 }),
    ];
  } finally {
    await Promise.all([apiAnchor.stop(), workerAnchor.stop()]);
    await stack.close();
  }
}

async function line(
  what: string,
  options: { product: Child; anchor: Child; must: number; aim: number },
): Promise<Measured> {
  const [product, anchor] = await Promise.all([residentMb(options.product), residentMb(options.anchor)]);
  return {
    what,
    anchor: `libraries alone ${format(anchor)} MB`,
    product: `${format(product)} MB`,
    value: product / anchor,
    must: options.must,
    aim: options.aim,
    isMoreBetter: false,
    unit: "×",
  };
}
