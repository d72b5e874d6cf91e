import { workerData } from "node:worker_threads";

/** Interval of the checks, in ms. */
const CHECK_EVERY_MS = 100;

/** Kills its own process when that exceeds `rssMb`, or lost its parent: from a thread, so also while it is busy. */
function watch({ rssMb, parentPid }: { rssMb: number; parentPid: number }): void {
  setInterval(() => {
    const isTooLarge = process.memoryUsage.rss() > rssMb * 1_048_576;
    if (isTooLarge || process.ppid !== parentPid) process.kill(process.pid, "SIGKILL");
  }, CHECK_EVERY_MS);
}

if (workerData) watch(workerData);
