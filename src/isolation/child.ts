import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import type { Socket } from "node:net";
import { setPriority } from "node:os";
import { type ChildMessage, type ChildRequest, MESSAGES_FD, readFrames } from "./child-messages.ts";
import { residentMb } from "./memory.ts";
import { waitedForProcessor, watchRunningTime } from "./running-time.ts";

/** Longest start of a child, in ms. A request's time does not include it. */
const START_TIMEOUT_MS = 30_000;

/** Interval of looks at a child's memory, in ms. */
const LOOK_EVERY_MS = 100;

/** The service's own processes run first: a child may run an attempt to use up the processor. */
const NICENESS = 5;
/** Niceness of a child whose request is slow, or whose owner uses much. */
const SLOW_NICENESS = 19;

/** The child ended before its response: it was killed for its time or its memory, or it crashed. */
export class ChildLost extends Error {
  override name = "ChildLost";
  readonly reason: "time" | "memory" | "crash";

  constructor(reason: ChildLost["reason"], detail: string) {
    super(`a child process was lost (${reason}): ${detail}`);
    this.reason = reason;
  }
}

/** What a child runs, and its bounds. */
export type ChildOptions = { entry: URL; memory: { heapMb: number; rssMb: number } };

/** A process that serves the requests of a pool. */
export type Child = {
  process: ChildProcess;
  pipe: Socket;
  /** Its messages: "ready" first, which `untilReady` takes, then the responses to its requests. */
  messages: AsyncGenerator<unknown, void>;
  /** The last request that it was sent. */
  lastId?: number;
  /** The message that is waited for; a request that was left leaves it to who comes next. */
  next?: Promise<IteratorResult<unknown, void>> | undefined;
  /** The pool has ended it, so that its end says nothing about its request. */
  isKilled: boolean;
  /** The owner that it was slow for: it has the lowest priority, which only root could raise, and serves this owner alone. */
  slowFor?: string;
  /** Resolves with the reason once the child has ended. */
  lost: Promise<ChildLost>;
};

/**
 * Starts a process that runs `entry`, with an empty environment. `isAwaited`: a request waits for it, so that it has the
 * service's priority until it is ready. `memory`: bounds in MB of V8's heap and of the process.
 */
export function startChild({ entry, memory, isAwaited }: ChildOptions & { isAwaited: boolean }): Child {
  const child = fork(entry, ["--serve-requests", String(memory.rssMb)], {
    serialization: "advanced",
    execArgv: [`--max-old-space-size=${memory.heapMb}`],
    env: {},
    stdio: ["ignore", "ignore", "ignore", "ipc", "pipe"],
  });
  const pipe = child.stdio[MESSAGES_FD] as Socket; // the types do not say that a "pipe" is one
  child.on("error", () => undefined); // reported as `lost`; without a listener it would end the host
  pipe.on("error", () => undefined); // likewise
  if (!isAwaited) setNiceness(child, NICENESS);
  const state = { process: child, pipe, messages: readFrames(pipe), isKilled: false };
  const lost = once(child, "exit").then(
    ([code, name]) => toLoss(code, name, state),
    (error: Error) => new ChildLost("crash", error.message),
  );
  const look = setInterval(() => {
    if ((residentMb(child.pid) ?? 0) > memory.rssMb) child.kill("SIGKILL");
  }, LOOK_EVERY_MS).unref();
  void lost.then(() => clearInterval(look));
  return Object.assign(state, { lost });
}

/** Lets every other process run first, for as long as the child lives. */
export function lowerPriority(child: Child, owner: string): void {
  if (child.slowFor === owner) return;
  child.slowFor = owner;
  setNiceness(child.process, SLOW_NICENESS);
}

function setNiceness({ pid }: ChildProcess, niceness: number): void {
  for (const thread of pid === undefined ? [] : threadsOf(pid)) {
    try {
      setPriority(thread, niceness);
    } catch {} // it has just ended
  }
}

/** On Linux each thread has a niceness of its own; those of V8 and the watchdog are there before the first request. */
function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [pid]; // it has just ended, or this is not Linux
  }
}

/** Keeps the host alive for this child, or not: it is while the host waits for a response. */
export function keepHostAlive({ process: child, pipe }: Child, isKept: boolean): void {
  for (const handle of [child, child.channel, pipe]) {
    if (isKept) handle?.ref();
    else handle?.unref();
  }
}

/** Yields the messages of a child to one request. @throws ChildLost; the signal's reason. */
export async function* exchange<Request, Part>(
  child: Child,
  request: ChildRequest<Request>,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): AsyncGenerator<ChildMessage<Part>, void> {
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => undefined); // it may be rejected after the last wait
  const onAbort = () => stopped.reject(signal.reason);
  const next = async (withinMs: number, late: ChildLost) => {
    const waited = () => waitedForProcessor(child.process.pid);
    const watch = watchRunningTime(withinMs, () => stopped.reject(late), waited);
    try {
      return { message: await Promise.race([nextMessage(child), stopped.promise]), tookMs: watch.stop() };
    } finally {
      watch.stop();
    }
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    signal.throwIfAborted();
    child.lastId = request.id;
    child.process.send(request, () => undefined); // if the child has ended, its pipe reports it
    const overdue = new ChildLost("time", `it took longer than ${timeoutMs} ms`);
    let leftMs = timeoutMs;
    for (;;) {
      const found = await next(leftMs, overdue);
      leftMs -= found.tookMs;
      const message = found.message as ChildMessage<Part>; // what `serveRequests` writes
      if (message.id === request.id) yield message;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits until a child takes requests. @throws ChildLost when it does not within its time. */
export async function untilReady(child: Child): Promise<void> {
  const late = Promise.withResolvers<never>();
  const watch = watchRunningTime(START_TIMEOUT_MS, () =>
    late.reject(new ChildLost("crash", "it did not start in time")),
  );
  try {
    await Promise.race([nextMessage(child), late.promise]);
    setNiceness(child.process, NICENESS);
  } finally {
    watch.stop();
  }
}

/** Whether a child comes to the end of a request that nobody waits for any more, within `timeoutMs`. */
export async function comesToEnd<Part>(child: Child, id: number, timeoutMs: number): Promise<boolean> {
  const late = Promise.withResolvers<never>();
  const watch = watchRunningTime(timeoutMs, () => late.reject(new ChildLost("time", "it was given up")));
  try {
    for (;;) {
      const message = (await Promise.race([nextMessage(child), late.promise])) as ChildMessage<Part>;
      if (message.id === id && message.kind !== "part") return true;
    }
  } catch (error) {
    if (error instanceof ChildLost) return false;
    throw error;
  } finally {
    watch.stop();
  }
}

/** @throws ChildLost */
async function nextMessage(child: Child): Promise<unknown> {
  try {
    child.next ??= child.messages.next();
    const { value, done } = await child.next;
    child.next = undefined;
    if (!done) return value;
  } catch (error) {
    if (error instanceof RangeError) throw new ChildLost("crash", error.message);
  }
  throw await child.lost;
}

/** V8 aborts at its heap's bound and traps at a single value that is too large; the watchdog or the system kills. */
const memorySignals: ReadonlySet<NodeJS.Signals | null> = new Set(["SIGABRT", "SIGTRAP", "SIGILL", "SIGKILL"] as const);

function toLoss(code: number | null, name: NodeJS.Signals | null, { isKilled }: { isKilled: boolean }): ChildLost {
  const isMemory = !isKilled && (memorySignals.has(name) || code === 134);
  return new ChildLost(isMemory ? "memory" : "crash", `it ended with ${name ?? `code ${code}`}`);
}
