import { AppError, ConfigError } from "./lib/errors.ts";

/** A host that runs as a process: what it reports to its parent when it is ready, and how it ends. */
export type Running = {
  ready: Record<string, unknown>;
  /** Time that running work has to end when it is closed, in ms. */
  graceMs: number;
  close(): Promise<void>;
};

/** Extra time after the grace period before the process is forced to exit, in ms. */
const CLOSE_SLACK_MS = 4_000;
/** The exit code of a process that could not close in time. Others pick up its work when its leases have expired. */
const CUT_SHORT = 3;

/**
 * Runs a host until SIGTERM, SIGINT, or the end of the parent that forked it, then closes it once. A parent gets
 * `{ type: "ready", … }` over IPC; one that ends before that ends the start. A failed start says why in a line and exits with code 1 (2 for wrong settings). A host
 * that cannot close in time, as a worker whose Redis is unavailable, exits with code 3.
 */
export async function runProcess(open: () => Promise<Running>): Promise<void> {
  let running: Running;
  // The parent may end meanwhile, and says so once: nobody would be left to end what is being opened.
  const giveUp = () => process.exit(1);
  process.on("disconnect", giveUp);
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
    setTimeout(() => {
      process.stderr.write("could not close in time: others pick up what is left\n");
      process.exit(CUT_SHORT);
    }, running.graceMs + CLOSE_SLACK_MS).unref();
    await running.close();
    if (process.connected) process.disconnect();
  };
  process.on("SIGTERM", stop);
  // Ctrl-C reaches a whole group of processes; a parent stops its children itself.
  process.on("SIGINT", process.send ? () => undefined : stop);
  process.off("disconnect", giveUp).on("disconnect", stop);
  process.send?.({ type: "ready", ...running.ready });
}
