import { readFile } from "node:fs/promises";
import type { Child } from "./children.ts";

/** Clock ticks a second of /proc/PID/stat. */
const TICKS = 100;

/** Resident memory of a process, in MB, as Linux reports it. */
export async function residentMb(child: Child): Promise<number> {
  const status = await readFile(`/proc/${child.process.pid}/status`, "utf8");
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  if (kilobytes === undefined) throw new Error("the process has no VmRSS");
  return Number(kilobytes) / 1_024;
}

/** CPU time of a process until now, user and system, in ms. */
export async function cpuMsOf(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS;
}
