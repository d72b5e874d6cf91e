import { Worker } from "node:worker_threads";
import { AppError } from "../lib/errors.ts";
import {
  type ChildError,
  type ChildMessage,
  type ChildRequest,
  MESSAGES_FD,
  READY,
  writeFrame,
} from "./child-messages.ts";

/** Longest cause of an error in the host's log, in characters. */
const MAX_CAUSE = 4_000;

/** Whether this process was forked by a pool of children. */
export const isChild = () => process.send !== undefined && process.argv[2] === "--serve-requests";

/**
 * Serves the requests of the pool in a child process, one at a time. The pool's caller receives what `handle` throws: an
 * AppError as it is, any other error as `internal`. `send` blocks until the pool's caller has taken the parts before, and
 * throws a RangeError for a part that is too large.
 */
export function serveRequests<Request, Part>(
  handle: (request: Request, send: (part: Part) => void) => Promise<void> | void,
): void {
  const reply = (message: ChildMessage<Part>) => writeFrame(MESSAGES_FD, message);
  const workerData = { rssMb: Number(process.argv[3]), parentPid: process.ppid };
  new Worker(new URL("./watchdog.ts", import.meta.url), { workerData }).unref();
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => undefined); // only the pool ends a child
  process.on("disconnect", () => process.exit(0));
  process.on("message", async ({ id, request }: ChildRequest<Request>) => {
    const before = process.cpuUsage();
    const cpuMs = () => {
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    try {
      await handle(request, (part) => reply({ id, kind: "part", part }));
      reply({ id, kind: "end", cpuMs: cpuMs() });
    } catch (error) {
      reply({ id, kind: "error", error: toChildError(error), cpuMs: cpuMs() });
    }
  });
  writeFrame(MESSAGES_FD, READY);
}

function toChildError(error: unknown): ChildError {
  const known =
    error instanceof AppError ? error : new AppError("internal", "A child process failed.", { cause: error });
  const { code, message, param, details, retryable } = known;
  const full = known.cause instanceof Error ? (known.cause.stack ?? known.cause.message) : String(known.cause ?? "");
  const cause = full.slice(0, MAX_CAUSE);
  return { code, message, options: { details, retryable, cause, ...(param === undefined ? {} : { param }) } };
}
