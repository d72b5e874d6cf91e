import { readdir, readFile } from "node:fs/promises";
import type { Child } from "./children.ts";

/** Clock ticks a second of /proc/PID/stat. */
const TICKS = 100;

/** Memory of a process in MB, as Linux reports it: all that it has in memory, and with a share of what it has in common with others. */
export type Memory = { residentMb: number; proportionalMb: number };

/** @throws Error when there is no such process. */
export async function memoryOf(pid: number | undefined): Promise<Memory> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]) / 1_024;
  return { residentMb: read("Rss"), proportionalMb: read("Pss") };
}

/** Resident memory of a process, in MB. */
export async function residentMb(child: Child): Promise<number> {
  return (await memoryOf(child.process.pid)).residentMb;
}

/** CPU time of a process until now, user and system, in ms; of one thread when given as `PID/task/THREAD`. */
export async function cpuMsOf(pid: number | string | undefined): Promise<number> {
  const fields = await statOf(pid);
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS;
}

/**
 * CPU time of the threads that a process has, until now, in ms: in nanoseconds, where `cpuMsOf` counts ticks of 10 ms.
 * https://docs.kernel.org/scheduler/sched-stats.html
 */
export async function threadsMsOf(pid: number | undefined): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const read = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8"));
  return (await Promise.all(read)).reduce((sum, stat) => sum + Number(stat.split(" ")[0]) / 1e6, 0);
}

/** CPU time of a process' children that have ended, in ms. */
export async function endedChildrenMsOf(pid: number): Promise<number> {
  const fields = await statOf(pid);
  return ((Number(fields[13]) + Number(fields[14])) * 1_000) / TICKS;
}

async function statOf(pid: number | string | undefined): Promise<string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}
