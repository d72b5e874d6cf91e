import { AppError } from "../lib/errors.ts";
import { type Child, ChildLost, comesToEnd, exchange, lowerPriority } from "./child.ts";
import { keepChildren } from "./children.ts";
import type { Memory } from "./memory.ts";
import { makeEffort, makePresence } from "./pace.ts";
import { makeShares } from "./shares.ts";

/** A request that takes longer runs at the lowest priority from then on, in ms: it may be meant to use up the processor. */
const SLOW_MS = 500;

/** How long a child may continue a request that was left, in ms: at the lowest priority that is little work, and starting another costs more. */
const GRACE_MS = 5_000;

export type ChildPool<Request, Part> = ReturnType<typeof makeChildPool<Request, Part>>;

type ChildPoolOptions = {
  /** The module that the child runs; it calls `serveRequests`. */
  entry: URL;
  /** Largest number of children. */
  size: number;
  /** Whether a child is kept ready for who comes next, for work that is quicker than a start. */
  hasSpare?: boolean;
  /** How long none may be free before that one starts, in ms; another time in tests. */
  busyMs?: number;
  /** Largest number of children for one owner that is alone; while others work here it has one. Its further requests wait. */
  perOwner: number;
  /** Longest time of one request, in ms; then its child is killed. Only waiting for the next part counts. */
  timeoutMs: number;
  /** Bounds on the memory of a child, in MB: of V8's heap, and of the whole process. */
  memory: { heapMb: number; rssMb: number };
  /** The memory that all children of this process have together; their bounds count. */
  shared: Memory;
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
  const effort = makeEffort();
  const presence = makePresence();
  let lastId = 0;

  async function* runIn(child: Child, request: Request, { owner, signal, hold }: Place) {
    const id = ++lastId;
    let isUsable = false;
    let isLost = false;
    const startedAt = performance.now();
    let cpuMs: number | undefined;
    const letOthersFirst = () => {
      lowerPriority(child, owner);
      children.startSpare();
    };
    if (effort.isHigh(owner)) letOthersFirst();
    const slow = setTimeout(letOthersFirst, SLOW_MS);
    try {
      for await (const message of exchange<Request, Part>(child, { id, request }, { signal, timeoutMs })) {
        if (message.kind === "part") {
          yield message.part;
          continue;
        }
        isUsable = true;
        ({ cpuMs } = message);
        if (message.kind === "end") return;
        throw new AppError(message.error.code, message.error.message, message.error.options);
      }
    } catch (error) {
      isLost = error instanceof ChildLost;
      throw error;
    } finally {
      const giveBack = (isAlive: boolean) => {
        clearTimeout(slow);
        effort.add(owner, cpuMs ?? performance.now() - startedAt);
        children.giveBack(child, isAlive);
        if (presence.hasOthers(owner)) children.startSecond();
      };
      if (isUsable || isLost) giveBack(isUsable);
      else if (child.lastId !== id)
        giveBack(true); // it was not sent the request
      else hold(comesToEnd(child, id, GRACE_MS).then(giveBack));
    }
  }
  /** A used child holds the garbage of earlier requests: what it cannot do is done once more, in a new one. */
  async function* runInUsedOrNew(request: Request, given: Place) {
    const child = await children.take(given.owner, given.signal);
    let isRepeatable = child.lastId !== undefined;
    try {
      for await (const part of runIn(child, request, given)) {
        isRepeatable = false;
        yield part;
      }
      return;
    } catch (error) {
      if (!isRepeatable || !(error instanceof ChildLost) || error.reason === "time") throw error;
    }
    yield* runIn(await children.takeNew(given.owner), request, given);
  }

  return {
    /**
     * Sends a request to a child process and yields its response part by part. `owner` is the tenant that pays for the work.
     * After leaving the iteration early, or aborting the signal, the child has 5 s to come to its end, and keeps its place. A
     * child that is ahead of the iteration blocks.
     * @throws AppError as the child reports it; ChildLost; the signal's reason.
     */
    async *run(request: Request, given: Given): AsyncGenerator<Part, void> {
      const { owner, signal } = given;
      presence.begins(owner);
      const leave = await shares.enter(owner, signal, presence.hasOthers(owner) ? 1 : options.perOwner);
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
