import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { pollUntil } from "./poll-until.ts";

/** How a stop is made: a signal to the whole process group, after some ms, perhaps with the folder removed at the same time. */
export type Stop = { signal: "SIGTERM" | "SIGKILL"; afterMs: number; isFolderRemoved: boolean };

/** Longest time until nothing is left of the services: the grace of each process, one in another. */
const GONE_WITHIN_MS = 20_000;

/** Starts the embedded services, stops them so, and waits until no process of them is left. @throws Error when one is. */
export async function stopServices({ signal, afterMs, isFolderRemoved }: Stop): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "switchyard-stop-"));
  const mark = `SWITCHYARD_STOP_TEST=${dataDir}`;
  try {
    const script = fileURLToPath(new URL("./hold-services.ts", import.meta.url));
    const env = { ...process.env, SWITCHYARD_STOP_TEST: dataDir };
    const child = spawn(process.execPath, [script, dataDir], { detached: true, stdio: "ignore", env });
    const ended = once(child, "exit");
    await Promise.race([delay(afterMs), ended]);
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, signal);
    if (isFolderRemoved) await rm(dataDir, { recursive: true, force: true }).catch(() => undefined); // it is being written
    await ended;
    const what = `the end of everything after ${signal} at ${afterMs} ms`;
    await pollUntil(async () => !(await isAnyLeft(mark)), { timeoutMs: GONE_WITHIN_MS, everyMs: 100, what });
  } finally {
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** Whether a process with this in its environment is left; Linux alone tells. */
async function isAnyLeft(mark: string): Promise<boolean> {
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const environment = await readFile(join("/proc", pid, "environ"), "latin1").catch(() => ""); // it has ended
    if (environment.split("\0").includes(mark)) return true;
  }
  return false;
}
