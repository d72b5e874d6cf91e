import { AppError } from "../errors.ts";
import { type Child, ChildLost, comesToEnd, exchange, keepHostAlive, lowerPriority, startChild } from "./child.ts";
import { makeShares } from "./shares.ts";

/** An idle child is killed after this time, to free its memory, in ms. */
const IDLE_MS = 30_000;
/** A request that takes longer runs at the lowest priority from then on, in ms: it may be meant to use up the processor. */
const SLOW_MS = 500;

/** How long a child may go on with a request that was left, in ms: starting another one costs as much. */
const GRACE_MS = 1_000;

export type ChildPool<Request, Part> = ReturnType<typeof makeChildPool<Request, Part>>;

type ChildPoolOptions = {
  /** The module that the child runs; it calls `serveRequests`. */
  entry: URL;
  /** Largest number of children. */
  size: number;
  /** Largest number of children for one owner; its further requests wait. */
  perOwner: number;
  /** Longest time of one request, in ms; then its child is killed. Only waiting for the next part counts. */
  timeoutMs: number;
  /** Bounds on the memory of a child, in MB: of V8's heap, and of the whole process. */
  memory: { heapMb: number; rssMb: number };
};

/**
 * Runs work of unknown cost in processes that can be killed: a thread that runs out of memory ends its whole process, a
 * child does not. Children start on demand, and are reused after a request that succeeded. Their environment is empty, so
 * that they cannot read a secret of the service.
 */
export function makeChildPool<Request, Part>(options: ChildPoolOptions) {
  const { timeoutMs } = options;
  const shares = makeShares(options);
  const children = keepChildren(options);
  let lastId = 0;

  async function* runIn(child: Child, request: Request, { owner, signal, hold }: Place) {
    const id = ++lastId;
    let isUsable = false;
    let isLost = false;
    let slow: NodeJS.Timeout | undefined;
    const watch = () => {
      slow = setTimeout(() => (child.isReady ? lowerPriority(child, owner) : watch()), SLOW_MS);
    };
    watch();
    try {
      for await (const message of exchange<Request, Part>(child, { id, request }, { signal, timeoutMs })) {
        isUsable = message.kind !== "part";
        if (message.kind === "end") return;
        if (message.kind === "part") yield message.part;
        else throw new AppError(message.error.code, message.error.message, message.error.options);
      }
    } catch (error) {
      isLost = error instanceof ChildLost;
      throw error;
    } finally {
      const giveBack = (isAlive: boolean) => {
        clearTimeout(slow);
        children.giveBack(child, isAlive);
      };
      if (isUsable || isLost) giveBack(isUsable);
      else if (child.lastId !== id)
        giveBack(true); // it was not sent the request
      else hold(comesToEnd(child, id, GRACE_MS).then(giveBack));
    }
  }
  /** A used child holds the garbage of earlier requests: what it cannot do is done once more, in a new one. */
  async function* runInUsedOrNew(request: Request, given: Place) {
    const child = children.take(given.owner);
    let isRepeatable = child.isReady;
    try {
      for await (const part of runIn(child, request, given)) {
        isRepeatable = false;
        yield part;
      }
      return;
    } catch (error) {
      if (!isRepeatable || !(error instanceof ChildLost) || error.reason === "time") throw error;
    }
    yield* runIn(children.takeNew(), request, given);
  }

  return {
    /**
     * Sends a request to a child process and yields its response part by part. `owner` is the tenant that pays for the work.
     * After leaving the iteration early, or aborting the signal, the child has 1 s to come to its end, and keeps its place. A
     * child that is ahead of the iteration blocks.
     * @throws AppError as the child reports it; ChildLost; the signal's reason.
     */
    async *run(request: Request, given: Given): AsyncGenerator<Part, void> {
      const leave = await shares.enter(given.owner, given.signal);
      let rest: Promise<void> | undefined;
      const hold = (work: Promise<void>) => {
        rest = work.finally(leave);
      };
      try {
        yield* runInUsedOrNew(request, { ...given, hold });
      } finally {
        if (rest === undefined) leave();
      }
    },
    /** Kills all children. */
    close: children.close,
  };
}

type Given = { owner: string; signal: AbortSignal };
/** `hold` keeps the owner's place until the work has ended. */
type Place = Given & { hold(work: Promise<void>): void };

/** Keeps the children of a pool between their requests. */
function keepChildren(options: ChildPoolOptions) {
  const idle = new Map<Child, NodeJS.Timeout>();
  const running = new Set<Child>();

  const leaveIdle = (child: Child) => {
    clearTimeout(idle.get(child));
    idle.delete(child);
  };
  const kill = (child: Child) => {
    leaveIdle(child); // now: its end is noticed later, and until then it looks alive
    child.isKilled = true;
    child.process.kill("SIGKILL");
  };
  const takeNew = () => {
    const child = startChild(options);
    child.process.once("exit", () => leaveIdle(child));
    running.add(child);
    return child;
  };
  return {
    takeNew,
    take(owner: string): Child {
      const [oldest] = idle.keys();
      const reusable = [...idle.keys()].find((each) => (each.slowFor ?? owner) === owner);
      if (!reusable && oldest && idle.size >= options.size) kill(oldest);
      if (!reusable) return takeNew();
      leaveIdle(reusable);
      keepHostAlive(reusable, true);
      running.add(reusable);
      return reusable;
    },
    giveBack(child: Child, isUsable: boolean): void {
      running.delete(child);
      if (!isUsable || !child.process.connected) {
        kill(child);
        return;
      }
      keepHostAlive(child, false);
      idle.set(child, setTimeout(kill, IDLE_MS, child).unref());
    },
    close(): void {
      for (const child of [...idle.keys(), ...running]) kill(child);
    },
  };
}
