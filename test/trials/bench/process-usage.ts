import { readFile } from "node:fs/promises";
import type { Child } from "./children.ts";

/** Resident memory of a process as Linux reports it, in MB. @throws Error when there is no such process. */
export async function residentMb(child: Child): Promise<number> {
  const text = await readFile(`/proc/${child.process.pid}/smaps_rollup`, "utf8");
  return Number(/^Rss:\s+(\d+) kB$/m.exec(text)?.[1]) / 1_024;
}
