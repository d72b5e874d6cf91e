import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { connectStore } from "../../src/store/connect.ts";
import type { TestPlatform } from "./start-platform.ts";

/** The process that hosts the embedded store of a data folder, as its `serverStatus` tells. */
export async function hostPid(dataDir: string): Promise<number> {
  const logger = makeLogger({ level: "silent", name: "test" });
  const services = await ensureServices({ dataDir, mongo: true, redis: false, logger });
  const store = await connectStore({ url: services.mongoUrl ?? "", db: "test", timeoutMs: 5_000 });
  try {
    return Number((await store.db.command({ serverStatus: 1 })).pid);
  } finally {
    await store.close();
    await services.close();
  }
}

/** The process of the Redis that a platform uses. */
export async function redisPid({ platform }: TestPlatform): Promise<number> {
  return Number(/process_id:(\d+)/.exec(await platform.redis.producer.info("server"))?.[1]);
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The processes below `ancestor` and that run a file, as `api/server.ts`. */
export async function descendantPids(file: string, ancestor: number): Promise<number[]> {
  const all = await listProcesses();
  const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && pid > 1 && (pid === ancestor || isBelow(parents.get(pid)));
  return all.filter(({ pid, args }) => isBelow(pid) && runs(args, file)).map(({ pid }) => pid);
}

/** The processes that this one has started itself and that run a file. */
export async function childPids(file: string): Promise<number[]> {
  const all = await listProcesses();
  return all.filter(({ parent, args }) => parent === process.pid && runs(args, file)).map(({ pid }) => pid);
}

const runs = (args: readonly string[], file: string) => args.some((arg) => arg.endsWith(file));

async function listProcesses(): Promise<{ pid: number; parent: number; args: string[] }[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid=,args="]);
  return stdout.split("\n").map((line) => {
    const [pid, parent, ...args] = line.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), args };
  });
}
