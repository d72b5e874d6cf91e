import { type Child, type ChildOptions, keepHostAlive, startChild, untilReady } from "./child.ts";

/** An idle child is killed after this time, to free its memory, in ms. */
const IDLE_MS = 30_000;
/** How long none may be free before another one starts beside those that work, in ms: most come back sooner than one starts. */
const BUSY_MS = 200;

type ChildrenOptions = ChildOptions & { size: number; hasSpare?: boolean; busyMs?: number };

/**
 * The children of a pool: lends each to one request at a time. A request that finds none starts one, and takes whichever is
 * free first, the new one or one that comes back. `hasSpare`: one that no owner is slow in is kept ready beside those that
 * stay busy, and an owner that has one already leaves it to others. One that is started ahead has a lower priority from the
 * beginning, since nobody waits for it.
 */
export function keepChildren(options: ChildrenOptions) {
  const idle = keepIdle((child) => kill(child));
  const starting = new Set<Child>();
  const running = new Map<Child, string>();
  const waiting = makeQueue();

  const kill = (child: Child) => {
    idle.leave(child); // now: its end is noticed later, and until then it looks alive
    end(child);
  };
  const start = async (isAwaited: boolean) => {
    const child = await startInto(starting, { ...options, isAwaited });
    child.process.once("exit", () => idle.leave(child));
    return child;
  };
  const all = () => idle.count() + starting.size + running.size;
  const isFull = () => all() >= options.size;
  const isOneAwaited = () => starting.size < waiting.length();
  const startForAll = () =>
    void start(isOneAwaited()).then(offer, (error: unknown) => {
      if (waiting.length() > starting.size) waiting.takeFirst(() => true)?.reject(error);
    });
  const isSpareThere = () => starting.size > 0 || idle.all().some(({ slowFor }) => slowFor === undefined);
  const spare = makeLater(options.busyMs ?? BUSY_MS, () => {
    while ((isOneAwaited() || !isSpareThere()) && !isFull()) startForAll();
  });
  const startSpare = options.hasSpare ? spare.ask : () => undefined;
  const lend = (child: Child, owner: string) => {
    idle.leave(child);
    keepHostAlive(child, true);
    running.set(child, owner);
    startSpare();
    return child;
  };
  const hasChild = (owner: string) => running.values().some((other) => other === owner);
  /** Gives a child to who waits for one: first come, first served, but an owner that has one lets the others go first. */
  const offer = (child: Child) => {
    const first =
      waiting.takeFirst((owner) => mayServe(child, owner) && !hasChild(owner)) ??
      waiting.takeFirst((owner) => mayServe(child, owner));
    if (first) return first.resolve(lend(child, first.owner));
    keepHostAlive(child, false);
    idle.add(child);
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
      if (options.hasSpare && idle.count() === 1 && all() === 1 && !isFull()) startForAll();
    },
    giveBack(child: Child, isUsable: boolean): void {
      running.delete(child);
      if (isUsable && child.process.connected) offer(child);
      else kill(child);
    },
    close(): void {
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
    add: (child: Child) => void timers.set(child, setTimeout(onOver, IDLE_MS, child).unref()),
    leave(child: Child): void {
      clearTimeout(timers.get(child));
      timers.delete(child);
    },
  };
}

/** Starts a child, which is in `starting` until it is ready. @throws ChildLost when it does not start. */
async function startInto(starting: Set<Child>, options: ChildOptions & { isAwaited: boolean }): Promise<Child> {
  const child = startChild(options);
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

function end(child: Child): void {
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
  return {
    length: () => waiting.length,
    /** Takes out the first whose owner fits. */
    takeFirst(fits: (owner: string) => boolean): Waiting | undefined {
      const place = waiting.findIndex(({ owner }) => fits(owner));
      return place < 0 ? undefined : waiting.splice(place, 1)[0];
    },
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
