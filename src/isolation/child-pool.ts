import { type ChildProcess, fork } from "node:child_process";
import { AppError } from "../errors.ts";
import type { ChildMessage, ChildRequest, MemoryBounds } from "./child-messages.ts";

/** A child without work for this long ends and gives its memory back, in ms. */
const IDLE_MS = 30_000;

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
   * Leaving the iteration early, or aborting the signal, kills the child.
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
  /** Longest time of one request, in ms; its child is killed then. Waiting for a child does not count. */
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
  const idle = new Map<ChildProcess, NodeJS.Timeout>();
  const running = new Map<ChildProcess, string>();
  const waiting: { owner: string; wake(): void }[] = [];
  let lastId = 0;

  const hasRoom = (owner: string) => {
    const own = [...running.values()].filter((each) => each === owner);
    return running.size < options.size && own.length < options.perOwner;
  };
  const wakeNext = () => {
    const place = waiting.findIndex(({ owner }) => hasRoom(owner));
    if (place >= 0) waiting.splice(place, 1)[0]?.wake();
  };
  const waitForRoom = async (owner: string, signal: AbortSignal) => {
    signal.throwIfAborted();
    while (!hasRoom(owner)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = () => resolve();
      const entry = { owner, wake };
      waiting.push(entry);
      signal.addEventListener("abort", wake, { once: true });
      await promise;
      signal.removeEventListener("abort", wake);
      if (!signal.aborted) continue;
      const place = waiting.indexOf(entry);
      if (place >= 0) waiting.splice(place, 1);
      else wakeNext(); // its turn had come, and passes on
      signal.throwIfAborted();
    }
  };
  const take = (owner: string): ChildProcess => {
    const [child = startChild(options)] = idle.keys();
    clearTimeout(idle.get(child));
    idle.delete(child);
    running.set(child, owner);
    return child;
  };
  const giveBack = (child: ChildProcess, isUsable: boolean) => {
    running.delete(child);
    const end = () => {
      idle.delete(child);
      child.kill("SIGKILL");
    };
    if (isUsable && child.connected) idle.set(child, setTimeout(end, IDLE_MS).unref());
    else end();
    wakeNext();
  };

  return {
    async *run(request, { owner, signal }) {
      await waitForRoom(owner, signal);
      const child = take(owner);
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
    },
    close() {
      for (const timer of idle.values()) clearTimeout(timer);
      for (const child of [...idle.keys(), ...running.keys()]) child.kill("SIGKILL");
    },
  };
}

function startChild({ entry, memory }: ChildPoolOptions): ChildProcess {
  const child = fork(entry, ["--serve-requests", String(memory.rssMb)], {
    serialization: "advanced",
    execArgv: [`--max-old-space-size=${memory.heapMb}`],
    env: {},
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  child.on("error", () => undefined); // reported to the request that waits for it; without a listener it would end the host
  return child;
}

/** Messages of a child to one request. @throws ChildLost; the signal's reason. */
async function* exchange<Request, Part>(
  child: ChildProcess,
  request: ChildRequest<Request>,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): AsyncGenerator<ChildMessage<Part>, void> {
  const messages: ChildMessage<Part>[] = [];
  let failure: { error: unknown } | undefined;
  let wake = Promise.withResolvers<void>();
  const fail = (error: unknown) => {
    failure ??= { error };
    wake.resolve();
  };
  const onMessage = (message: ChildMessage<Part>) => {
    if (message.id === request.id) messages.push(message);
    wake.resolve();
  };
  const onExit = (code: number | null, name: NodeJS.Signals | null) => fail(toLoss(code, name));
  const onAbort = () => fail(signal.reason);
  const timer = setTimeout(() => fail(new ChildLost("time", `it took longer than ${timeoutMs} ms`)), timeoutMs);
  child.on("message", onMessage).on("exit", onExit);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    child.send(request, (error) => {
      if (error) setImmediate(fail, new ChildLost("crash", error.message)); // its exit, if it is known by then, says more
    });
    for (;;) {
      const message = messages.shift();
      if (message) yield message;
      else if (failure) throw failure.error;
      else {
        await wake.promise;
        wake = Promise.withResolvers();
      }
    }
  } finally {
    clearTimeout(timer);
    child.off("message", onMessage).off("exit", onExit);
    signal.removeEventListener("abort", onAbort);
  }
}

/** V8 aborts at its heap's bound; the watchdog, or the system that is out of memory, kills. */
function toLoss(code: number | null, name: NodeJS.Signals | null): ChildLost {
  const isMemory = name === "SIGABRT" || name === "SIGKILL" || code === 134;
  return new ChildLost(isMemory ? "memory" : "crash", `it ended with ${name ?? `code ${code}`}`);
}

function toAppError({ code, message, options }: Extract<ChildMessage<unknown>, { kind: "error" }>["error"]): AppError {
  return new AppError(code, message, options);
}
