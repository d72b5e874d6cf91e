import { workerData } from "node:worker_threads";

/** How often a child is looked at, in ms. */
const LOOK_EVERY_MS = 100;

/**
 * Ends the process that it runs in when its memory passes `rssMb`, or when its parent is gone. It is a thread of its own, so
 * that it also sees a process that is busy.
 */
function watch({ rssMb, parentPid }: { rssMb: number; parentPid: number }): void {
  setInterval(() => {
    const isTooLarge = process.memoryUsage.rss() > rssMb * 1_048_576;
    if (isTooLarge || process.ppid !== parentPid) process.kill(process.pid, "SIGKILL");
  }, LOOK_EVERY_MS);
}

if (workerData) watch(workerData);
