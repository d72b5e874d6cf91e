import { readFile } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import type { Redis } from "ioredis";
import { type Child, pin } from "../children.ts";
import { withStore } from "../fill-chunks.ts";
import { cpuMsOf, endedChildrenMsOf } from "../process-usage.ts";
import type { Stack } from "../stack.ts";
import { type Cpu, type Part, parts } from "./demand.ts";

export type Pids = Record<Part, readonly number[]>;

/** The processes of a stack by part. Children that parse come and go, so ask again. */
export async function findPids(stack: Stack, redis: Redis, clients: readonly Child[]): Promise<Pids> {
  const store = await withStore(stack, async (db) => Number((await db.command({ serverStatus: 1 })).pid));
  const workers = stack.workers.map(({ process: { pid } }) => pid ?? 0);
  const children = await Promise.all(workers.map(childrenOf));
  return {
    client: [process.pid, ...clients.map((child) => child.process.pid ?? 0)],
    api: [stack.api.process.pid ?? 0],
    worker: workers,
    parser: children.flat(),
    store: [store],
    redis: [Number(/^process_id:(\d+)/m.exec(await redis.info("server"))?.[1])],
  };
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}

/** CPU of each part until now: of the threads that do its work, and of all others together. */
export async function readCpu(pids: Pids): Promise<{ main: Cpu; besideMs: number }> {
  const sum = async (part: Part) => {
    const read = pids[part].map(async (pid) => ({ all: await cpuMsOf(pid), main: await mainThreadMsOf(pid) }));
    const found = await Promise.all(read);
    const all = found.reduce((total, each) => total + each.all, 0);
    const main = found.reduce((total, each) => total + each.main, 0);
    if (part === "parser") {
      const ended = await Promise.all(pids.worker.map(endedChildrenMsOf));
      return { main: ended.reduce((total, ms) => total + ms, main), beside: all - main };
    }
    // The generator is no part of the product, and Redis' other threads write its file.
    return part === "client" ? { main: all, beside: 0 } : { main, beside: all - main };
  };
  const sums = await Promise.all(parts.map(async (part) => [part, await sum(part)] as const));
  return {
    main: Object.fromEntries(sums.map(([part, { main }]) => [part, main])) as Cpu, // of all parts
    besideMs: sums.reduce((total, [, { beside }]) => total + beside, 0),
  };
}

const mainThreadMsOf = (pid: number) => cpuMsOf(`${pid}/task/${pid}`);

/** Keeps the product's processes on these cores, and the generator and its model's server on those. */
export async function place(pids: Pids, cores: Record<Part, number | "any">): Promise<void> {
  for (const part of parts) for (const pid of pids[part]) pin(pid, cores[part]);
}

/** Bytes of the store's file that hold something. */
export function storedBytes({ env }: Stack): number {
  const database = new DatabaseSync(`${env.DATA_DIR}/store.sqlite`, { readOnly: true });
  try {
    const read = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
    return (read("page_count") - read("freelist_count")) * read("page_size");
  } finally {
    database.close();
  }
}

/** Commands that Redis has run, its memory and the bytes that went through it, until now. */
export async function readRedis(redis: Redis): Promise<{ commands: number; bytes: number; memoryBytes: number }> {
  const text = await redis.info();
  const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1]);
  return {
    commands: read("total_commands_processed"),
    bytes: read("total_net_input_bytes") + read("total_net_output_bytes"),
    memoryBytes: read("used_memory"),
  };
}
