/** Answers over IPC what this process holds: heap in MB (of what is alive, with `--expose-gc`), and sockets, files and the like. */
export function answerUsage(): void {
  process.on("message", ({ type }: { type: string }) => {
    if (type !== "usage") return;
    globalThis.gc?.();
    const heapMb = process.memoryUsage().heapUsed / 1_048_576;
    // Timers come and go with each call that is under way; what is not given back shows in what they hold.
    const handles = process.getActiveResourcesInfo().filter((kind) => kind !== "Timeout" && kind !== "Immediate");
    process.send?.({ type: "answer", heapMb, handles: handles.length });
  });
}
