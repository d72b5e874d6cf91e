import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { AppError } from "../errors.ts";
import {
  type ChildError,
  type ChildMessage,
  type ChildRequest,
  MESSAGES_FD,
  type MemoryBounds,
} from "./child-messages.ts";
import { readFrames } from "./frames.ts";
import { makeShares } from "./shares.ts";

/** A child without work for this long ends and gives its memory back, in ms. */
const IDLE_MS = 30_000;
/** Longest time for a child to start, in ms. It is no part of a request's time. */
const START_TIMEOUT_MS = 30_000;

/** The child ended before it had answered: it was killed for its time or its memory, or it crashed. */
export class ChildLost extends Error {
  override name = "ChildLost";
  readonly reason: "time" | "memory" | "crash";

  constructor(reason: ChildLost["reason"], detail: string) {
    super(`a child process was lost (${reason}): ${detail}`);
    this.reason = reason;
  }
}

export type ChildPool<Request, Part> = {
  /**
   * Sends a request to a child process and yields its answer part by part. `owner` is the tenant that the work is for.
   * Leaving the iteration early, or aborting the signal, kills the child. A child that is ahead of the iteration waits.
   * @throws AppError as the child reports it; ChildLost; the signal's reason.
   */
  run(request: Request, options: { owner: string; signal: AbortSignal }): AsyncGenerator<Part, void>;
  /** Kills all children. */
  close(): void;
};

export type ChildPoolOptions = {
  /** The module that the child runs; it calls `serveRequests`. */
  entry: URL;
  /** Children at the same time. */
  size: number;
  /** Children that one owner has at the same time; its further requests wait. */
  perOwner: number;
  /**
   * Longest time of one request, in ms; its child is killed then. Only the time that is spent waiting for the next part
   * counts, not that of a child's start, nor that of the work between two parts.
   */
  timeoutMs: number;
  memory: MemoryBounds;
};

/**
 * Runs work whose cost cannot be bounded in advance in processes that can be killed: a thread that runs out of memory takes
 * its whole process along, a child does not. Children start when they are needed, and serve again after a request that ended
 * well. They get no environment, so that no secret of the service is in their reach.
 */
export function makeChildPool<Request, Part>(options: ChildPoolOptions): ChildPool<Request, Part> {
  const { timeoutMs } = options;
  const shares = makeShares(options);
  const idle = new Map<Child, NodeJS.Timeout>();
  const running = new Set<Child>();
  let lastId = 0;

  const start = () => {
    const child = startChild(options);
    child.process.once("exit", () => {
      clearTimeout(idle.get(child));
      idle.delete(child);
    });
    return child;
  };
  const take = (): Child => {
    const [child = start()] = idle.keys();
    clearTimeout(idle.get(child));
    idle.delete(child);
    keepHostAlive(child, true);
    running.add(child);
    return child;
  };
  const giveBack = (child: Child, isUsable: boolean) => {
    running.delete(child);
    const kill = () => child.process.kill("SIGKILL");
    if (!isUsable || !child.process.connected) return void kill();
    keepHostAlive(child, false);
    idle.set(child, setTimeout(kill, IDLE_MS).unref());
  };
  async function* runIn(child: Child, request: Request, signal: AbortSignal) {
    let isUsable = false;
    try {
      const id = ++lastId;
      for await (const message of exchange<Request, Part>(child, { id, request }, { signal, timeoutMs })) {
        isUsable = message.kind !== "part";
        if (message.kind === "error") throw toAppError(message.error);
        if (message.kind === "end") return;
        yield message.part;
      }
    } finally {
      giveBack(child, isUsable);
    }
  }

  return {
    async *run(request, { owner, signal }) {
      const leave = await shares.enter(owner, signal);
      try {
        yield* runIn(take(), request, signal);
      } finally {
        leave();
      }
    },
    close() {
      for (const timer of idle.values()) clearTimeout(timer);
      for (const child of [...idle.keys(), ...running]) child.process.kill("SIGKILL");
    },
  };
}

type Child = {
  process: ChildProcess;
  pipe: Socket;
  /** What it sends: "ready" first, then the messages to its requests. */
  messages: AsyncGenerator<unknown, void>;
  isReady: boolean;
  /** How it ended, once it has. */
  lost: Promise<ChildLost>;
};

function startChild({ entry, memory }: ChildPoolOptions): Child {
  const child = fork(entry, ["--serve-requests", String(memory.rssMb)], {
    serialization: "advanced",
    execArgv: [`--max-old-space-size=${memory.heapMb}`],
    env: {},
    stdio: ["ignore", "ignore", "ignore", "ipc", "pipe"],
  });
  const pipe = child.stdio[MESSAGES_FD] as Socket; // what a "pipe" is, which the types do not say
  const lost = once(child, "exit").then(
    ([code, name]) => toLoss(code, name),
    (error: Error) => new ChildLost("crash", error.message),
  );
  child.on("error", () => undefined); // reported as `lost`; without a listener it would end the host
  pipe.on("error", () => undefined); // likewise
  return { process: child, pipe, messages: readFrames(pipe), isReady: false, lost };
}

/** Whether the host goes on living for this child alone: it does while it waits for the child. */
function keepHostAlive({ process: child, pipe }: Child, isKept: boolean): void {
  for (const handle of [child, child.channel, pipe]) {
    if (isKept) handle?.ref();
    else handle?.unref();
  }
}

/** Messages of a child to one request. @throws ChildLost; the signal's reason. */
async function* exchange<Request, Part>(
  child: Child,
  request: ChildRequest<Request>,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): AsyncGenerator<ChildMessage<Part>, void> {
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => undefined); // where nothing waits for it any more
  const onAbort = () => stopped.reject(signal.reason);
  const next = async (withinMs: number, late: ChildLost): Promise<unknown> => {
    const timer = setTimeout(() => stopped.reject(late), withinMs);
    try {
      return await Promise.race([nextMessage(child), stopped.promise]);
    } finally {
      clearTimeout(timer);
    }
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted();
    if (!child.isReady) await next(START_TIMEOUT_MS, new ChildLost("crash", "it did not start in time"));
    child.isReady = true;
    child.process.send(request, () => undefined); // a child that cannot be reached has ended, which its pipe reports
    const overdue = new ChildLost("time", `it took longer than ${timeoutMs} ms`);
    let leftMs = timeoutMs;
    for (;;) {
      const askedAt = performance.now();
      const message = (await next(leftMs, overdue)) as ChildMessage<Part>; // what `serveRequests` writes
      leftMs -= performance.now() - askedAt;
      if (message.id === request.id) yield message;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** @throws ChildLost */
async function nextMessage(child: Child): Promise<unknown> {
  try {
    const { value, done } = await child.messages.next();
    if (!done) return value;
  } catch (error) {
    if (error instanceof RangeError) throw new ChildLost("crash", error.message);
  }
  throw await child.lost;
}

/** V8 aborts at its heap's bound, and traps at a single value that is too large; the watchdog, or the system, kills. */
const memorySignals: ReadonlySet<NodeJS.Signals | null> = new Set(["SIGABRT", "SIGTRAP", "SIGILL", "SIGKILL"] as const);

function toLoss(code: number | null, name: NodeJS.Signals | null): ChildLost {
  const isMemory = memorySignals.has(name) || code === 134;
  return new ChildLost(isMemory ? "memory" : "crash", `it ended with ${name ?? `code ${code}`}`);
}

function toAppError({ code, message, options }: ChildError): AppError {
  return new AppError(code, message, options);
}
