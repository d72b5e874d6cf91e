import { setTimeout as delay } from "node:timers/promises";
import { newId } from "../../../src/ids.ts";
import { fillChunks, withStore } from "../fill-chunks.ts";
import { runConcurrently } from "../measure.ts";
import { memoryOf } from "../process-usage.ts";
import { openTenant } from "../stack.ts";
import { searchedChunks } from "./demand.ts";
import type { Desk } from "./demands.ts";
import { findPids, readRedis, storedBytes } from "./processes.ts";

/** What things that are kept or wait take, in bytes each. */
export type Stock = {
  chunk: { storeMemory: number; storedBytes: number };
  waitingJob: { redisMemory: number; storedBytes: number };
  /** Resident memory of idle processes, in MB, and of the store without chunks. */
  idleMb: { api: number; worker: number; store: number; redis: number };
};

/** Chunks of other tenants beside those that are searched. */
const otherChunks = 40_000;
const waitingJobs = 2_000;
/** The tenant whose documents are searched. */
export const searcherName = "searcher";

/** Fills the store with chunks, lets jobs wait, and weighs both. */
export async function measureStock(desk: Desk): Promise<Stock> {
  const { stack, redis, clients } = desk;
  const pids = await findPids(stack, redis, clients);
  const weigh = async (list: readonly number[]) => (await memoryOf(list[0])).residentMb;
  const idleMb = {
    api: await weigh(pids.api),
    worker: await weigh(pids.worker),
    store: await weigh(pids.store),
    redis: await weigh(pids.redis),
  };
  const before = storedBytes(stack);
  const { tenantId } = await openTenant(stack, searcherName);
  await withStore(stack, async (db) => {
    await fillChunks(db, tenantId, { from: 0, to: searchedChunks });
    await fillChunks(db, newId("tenant"), { from: 0, to: otherChunks });
  });
  await delay(500);
  const chunks = searchedChunks + otherChunks;
  const chunk = {
    storeMemory: (((await weigh(pids.store)) - idleMb.store) * 1_048_576) / chunks,
    storedBytes: (storedBytes(stack) - before) / chunks,
  };
  return { chunk, waitingJob: await measureWaiting(desk), idleMb };
}

/** Stops the worker for a while, so that its jobs wait. */
async function measureWaiting({ stack, redis, works }: Desk): Promise<Stock["waitingJob"]> {
  const worker = stack.workers[0]?.process;
  await runConcurrently(200, 16, () => works.run("no-op job"));
  await works.untilEnded();
  const before = { redis: await readRedis(redis), stored: storedBytes(stack) };
  worker?.kill("SIGSTOP");
  try {
    await runConcurrently(waitingJobs, 32, () => works.run("no-op job"));
    const after = { redis: await readRedis(redis), stored: storedBytes(stack) };
    return {
      redisMemory: (after.redis.memoryBytes - before.redis.memoryBytes) / waitingJobs,
      storedBytes: (after.stored - before.stored) / waitingJobs,
    };
  } finally {
    worker?.kill("SIGCONT");
    await works.untilEnded();
  }
}
