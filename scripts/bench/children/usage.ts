/** Answers over IPC what this process holds: heap in MB, and what keeps it alive (sockets, timers, files). */
export function answerUsage(): void {
  process.on("message", ({ type }: { type: string }) => {
    if (type !== "usage") return;
    const heapMb = process.memoryUsage().heapUsed / 1_048_576;
    process.send?.({ type: "answer", heapMb, handles: process.getActiveResourcesInfo().length });
  });
}
