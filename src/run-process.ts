import { ConfigError } from "./config.ts";
import { AppError } from "./errors.ts";

/** A host that runs as a process: what its parent is told when it is ready, and how it ends. */
export type Running = { ready: Record<string, unknown>; close(): Promise<void> };

/**
 * Runs a host until SIGTERM, SIGINT, or the end of the parent that forked it, then closes it once. A parent is told
 * `{ type: "ready", … }` over IPC. A start that fails says why in a line and ends with code 1 (2 for wrong settings).
 */
export async function runProcess(open: () => Promise<Running>): Promise<void> {
  let running: Running;
  try {
    running = await open();
  } catch (error) {
    const isExpected = error instanceof ConfigError || error instanceof AppError;
    process.stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(error instanceof ConfigError ? 2 : 1);
  }
  let isClosing = false;
  const stop = async () => {
    if (isClosing) return;
    isClosing = true;
    await running.close();
    if (process.connected) process.disconnect();
  };
  process.on("SIGTERM", stop);
  // Ctrl-C reaches a whole group of processes; one with a parent is told by it when to stop.
  process.on("SIGINT", process.send ? () => undefined : stop);
  process.on("disconnect", stop);
  process.send?.({ type: "ready", ...running.ready });
}
