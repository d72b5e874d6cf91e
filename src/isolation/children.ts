import { type Child, ChildLost, type ChildOptions, keepHostAlive, startChild, untilReady } from "./child.ts";
import type { Memory } from "./memory.ts";

/** An idle child is killed after this time, to free its memory, in ms. */
const IDLE_MS = 30_000;
/** How long none may be free before another one starts beside those that work, in ms: most come back sooner than one starts. */
const BUSY_MS = 200;

type ChildrenOptions = ChildOptions & { size: number; hasSpare?: boolean; busyMs?: number; shared: Memory };

/**
 * The children of a pool: lends each to one request at a time. A request that finds none starts one, and takes whichever is
 * free first, the new one or one that comes back. `hasSpare`: one that no owner is slow in is kept ready beside those that
 * stay busy, and an owner that has one already leaves it to others. One that is started ahead has a lower priority from the
 * beginning, since nobody waits for it. `shared`: the memory that all children of this process have together. While another
 * pool waits for it, children that come back end.
 */
export function keepChildren(options: ChildrenOptions) {
  const idle = keepIdle((child) => kill(child));
  const starting = new Set<Child>();
  const running = new Map<Child, string>();
  const waiting = makeQueue();

  const kill = (child: Child) => end(child, idle); // now: its end is noticed later, and until then it looks alive
  const line = standInLine(options, () => idle.all().slice(0, 1).map(kill).length > 0);
  const start = async (isAwaited: boolean) => {
    const child = await startInto(starting, { ...options, isAwaited, leaveMemory: await line.enter() });
    child.process.once("exit", () => idle.leave(child));
    return child;
  };
  const begun = () => line.length() + starting.size;
  const all = () => idle.count() + begun() + running.size;
  const isFull = () => all() >= options.size;
  const isOneAwaited = () => begun() < waiting.length();
  const startForAll = () =>
    void start(isOneAwaited()).then(offer, (error: unknown) => {
      if (waiting.length() > begun()) waiting.takeFirst()?.reject(error);
    });
  const isSpareThere = () => begun() > 0 || idle.hasOrdinary();
  const spare = makeLater(options.busyMs ?? BUSY_MS, () => {
    while ((isOneAwaited() || (!isSpareThere() && line.isShort())) && !isFull()) startForAll();
  });
  const startSpare = options.hasSpare ? spare.ask : () => undefined;
  const lend = (child: Child, owner: string) => {
    idle.leave(child);
    keepHostAlive(child, true);
    running.set(child, owner);
    startSpare();
    return child;
  };
  const hasChild = (owner: string) => new Set(running.values()).has(owner);
  /** Gives a child to who waits for one: first come, first served, but an owner that has one lets the others go first. */
  const offer = (child: Child) => {
    const first = waiting.takeFor(child, hasChild);
    if (first) return first.resolve(lend(child, first.owner));
    keepHostAlive(child, false);
    if (line.isWanted()) kill(child);
    else idle.add(child);
  };
  return {
    /** A child that has served no request. @throws ChildLost when it does not start. */
    takeNew: async (owner: string) => lend(await start(true), owner),
    /** A free child, once there is one. @throws ChildLost when none starts; the signal's reason. */
    async take(owner: string, signal: AbortSignal): Promise<Child> {
      const isLastLeft = options.hasSpare === true && hasChild(owner);
      const free = chooseIdle(idle.all(), owner, isLastLeft);
      if (free) return lend(free, owner);
      const given = waiting.enter(owner, signal);
      const useless = idle.all().find((child) => !mayServe(child, owner));
      if (useless && isFull()) kill(useless);
      const comesBack = options.hasSpare === true && running.keys().some((child) => mayServe(child, owner));
      if (comesBack) startSpare();
      else if (isOneAwaited() && !isFull()) startForAll();
      return given;
    },
    startSpare,
    /** Starts another one beside the only child, while that is idle, before two owners need one at the same time. */
    startSecond(): void {
      if (options.hasSpare && idle.count() === 1 && all() === 1 && !isFull() && line.isShort()) startForAll();
    },
    giveBack(child: Child, isUsable: boolean): void {
      running.delete(child);
      if (isUsable && child.process.connected && !line.isWanted()) offer(child);
      else kill(child);
      if (isOneAwaited() && !isFull()) startForAll();
    },
    close(): void {
      line.close();
      spare.stop();
      for (const child of [...idle.all(), ...starting, ...running.keys()]) kill(child);
    },
  };
}

/** Children that serve nobody, the longest idle first; `onOver` is called for one that was idle for too long. */
function keepIdle(onOver: (child: Child) => void) {
  const timers = new Map<Child, NodeJS.Timeout>();
  return {
    count: () => timers.size,
    all: () => [...timers.keys()],
    /** Whether there is one that no owner is slow in. */
    hasOrdinary: () => timers.keys().some(({ slowFor }) => slowFor === undefined),
    add: (child: Child) => void timers.set(child, setTimeout(onOver, IDLE_MS, child).unref()),
    leave(child: Child): void {
      clearTimeout(timers.get(child));
      timers.delete(child);
    },
  };
}

/** The starts of a pool that wait for memory. `endIdle` ends an idle child of the pool, if there is one. */
function standInLine({ shared, memory }: ChildrenOptions, endIdle: () => boolean) {
  const user = { mb: memory.rssMb, endIdle };
  let length = 0;
  let isClosed = false;
  return {
    length: () => length,
    /** Whether a child could start at once. */
    isShort: () => shared.hasRoom(user),
    /** Whether another pool waits. */
    isWanted: () => shared.isWanted(user),
    /** Waits for a child's memory, and returns how it is given back. @throws ChildLost when the pool was closed. */
    async enter(): Promise<() => void> {
      length += 1;
      const leave = await shared.enter(user);
      length -= 1;
      if (!isClosed) return leave;
      leave();
      throw new ChildLost("crash", "the pool was closed before it started");
    },
    close(): void {
      isClosed = true;
    },
  };
}

/** Starts a child, which is in `starting` until it is ready. @throws ChildLost when it does not start. */
async function startInto(
  starting: Set<Child>,
  options: ChildOptions & { isAwaited: boolean; leaveMemory(): void },
): Promise<Child> {
  const child = startChild(options);
  void child.lost.then(options.leaveMemory);
  starting.add(child);
  try {
    await untilReady(child);
    return child;
  } catch (error) {
    end(child);
    throw error;
  } finally {
    starting.delete(child);
  }
}

function end(child: Child, idle?: { leave(child: Child): void }): void {
  idle?.leave(child);
  child.isKilled = true;
  child.process.kill("SIGKILL");
}

/** Runs `work` once, `ms` after it was first asked for. */
function makeLater(ms: number, work: () => void) {
  let timer: NodeJS.Timeout | undefined;
  const run = () => {
    timer = undefined;
    work();
  };
  return {
    ask(): void {
      timer ??= setTimeout(run, ms).unref();
    },
    stop: () => clearTimeout(timer),
  };
}

/** The idle child that an owner may take: its own, else the longest idle one; not the last one if `isLastLeft` to others. */
function chooseIdle(idle: readonly Child[], owner: string, isLastLeft: boolean): Child | undefined {
  const own = idle.find(({ slowFor }) => slowFor === owner);
  const [first, second] = idle.filter(({ slowFor }) => slowFor === undefined);
  return own ?? (isLastLeft && !second ? undefined : first);
}

const mayServe = ({ slowFor }: Child, owner: string) => (slowFor ?? owner) === owner;

/** Requests that wait for a child, in their order. */
function makeQueue() {
  type Waiting = { owner: string; resolve(child: Child): void; reject(error: unknown): void };
  const waiting: Waiting[] = [];
  const takeFirst = (fits: (owner: string) => boolean = () => true): Waiting | undefined => {
    const place = waiting.findIndex(({ owner }) => fits(owner));
    return place < 0 ? undefined : waiting.splice(place, 1)[0];
  };
  return {
    length: () => waiting.length,
    takeFirst,
    /** Takes out who gets this child: the first that it may serve, before those who have a child already. */
    takeFor: (child: Child, hasChild: (owner: string) => boolean) =>
      takeFirst((owner) => mayServe(child, owner) && !hasChild(owner)) ?? takeFirst((owner) => mayServe(child, owner)),
    /** Waits to be taken out. @throws what it is rejected with; the signal's reason. */
    async enter(owner: string, signal: AbortSignal): Promise<Child> {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<Child>();
      const entry = { owner, resolve, reject };
      const leave = () => {
        const place = waiting.indexOf(entry);
        if (place >= 0) waiting.splice(place, 1);
        reject(signal.reason); // without effect on who has its child: the request gives it back
      };
      waiting.push(entry);
      signal.addEventListener("abort", leave, { once: true });
      try {
        return await promise;
      } finally {
        signal.removeEventListener("abort", leave);
      }
    },
  };
}
