/** A thread computes one task after the other, in the order of their arrival. */
type Thread = {
  queue: { ms: number; done: () => void }[];
  /** What a thread that has slept needs more for its next task, in ms: a system call, a switch, cold caches. */
  wakeMs: number;
  /** How long a sleep has that whole price, in ms: a shorter one costs its part of it. */
  deepSleepMs: number;
  asleepSince: number;
  /** Time that it has computed, in ms. */
  busyMs: number;
  /** CPU time as the scheduler counts it, so that who had little comes first. */
  virtualMs: number;
  /** Until when it is booked, in ms, while it has a core. */
  since?: number;
  /** Whether its turn ends with a slice, since others wait. */
  isSliced: boolean;
  /** The number of its last time on a core: an event of an earlier one is void. */
  turn: number;
};

/** How long a thread keeps a core while others wait for it, in ms: Linux' base slice on a small machine. */
const SLICE_MS = 3;
/** A thread that wakes takes the core of one that has had this much more, in ms. */
const PREEMPT_MS = 1;

export type Clock = { now(): number; after(ms: number, event: () => void): void };
export type Cores = ReturnType<typeof makeCores>;

export function makeThread({ wakeMs = 0, deepSleepMs = 0 }: { wakeMs?: number; deepSleepMs?: number }): Thread {
  return {
    queue: [],
    wakeMs,
    deepSleepMs,
    asleepSince: Number.NEGATIVE_INFINITY,
    busyMs: 0,
    virtualMs: 0,
    isSliced: false,
    turn: 0,
  };
}

/**
 * Threads that share cores, by the rules of a fair scheduler: the runnable thread that has had least comes first, a thread
 * that wakes may interrupt one that has had more, and all are switched after a slice. With as many cores as threads there is
 * no sharing, and each thread is a queue with one server.
 */
export function makeCores(clock: Clock, count: number) {
  const ready: Thread[] = [];
  const running = new Set<Thread>();
  let leastVirtualMs = 0;

  /** Books what a thread has computed since it was last looked at. */
  const book = (thread: Thread) => {
    const ms = clock.now() - (thread.since ?? clock.now());
    thread.since = clock.now();
    thread.busyMs += ms;
    thread.virtualMs += ms;
    const [task] = thread.queue;
    if (task) task.ms -= ms;
  };
  const leave = (thread: Thread) => {
    running.delete(thread);
    delete thread.since;
    thread.turn += 1;
  };
  const run = (thread: Thread) => {
    const [task] = thread.queue;
    if (!task) return;
    thread.since = clock.now();
    running.add(thread);
    thread.turn += 1;
    thread.isSliced = ready.length > 0;
    const { turn } = thread;
    clock.after(thread.isSliced ? Math.min(task.ms, SLICE_MS) : task.ms, () => {
      if (thread.turn === turn) endTurn(thread);
    });
  };
  const endTurn = (thread: Thread) => {
    book(thread);
    const [task] = thread.queue;
    const isDone = task !== undefined && task.ms <= 1e-9;
    if (isDone) thread.queue.shift();
    leave(thread);
    if (thread.queue.length > 0) ready.push(thread);
    else thread.asleepSince = clock.now();
    schedule();
    if (isDone) task.done();
  };
  const schedule = () => {
    while (running.size < count && ready.length > 0) {
      const least = ready.reduce((a, b) => (b.virtualMs < a.virtualMs ? b : a));
      ready.splice(ready.indexOf(least), 1);
      leastVirtualMs = Math.max(leastVirtualMs, least.virtualMs);
      run(least);
    }
  };
  /** Takes the core of the thread that has had most, if that is more than the waking one by enough. */
  const preempt = (waking: Thread) => {
    for (const thread of running) book(thread);
    const most = [...running].reduce((a, b) => (b.virtualMs > a.virtualMs ? b : a));
    if (most.virtualMs - waking.virtualMs > PREEMPT_MS) {
      leave(most);
      ready.push(most);
      return;
    }
    for (const thread of running) if (!thread.isSliced) run(thread); // with a slice from now on, since somebody waits
  };
  return {
    /** Gives a thread something to compute. */
    add(thread: Thread, task: { ms: number; done: () => void }): void {
      thread.queue.push(task);
      if (thread.queue.length > 1) return;
      const asleepMs = clock.now() - thread.asleepSince;
      task.ms += asleepMs >= thread.deepSleepMs ? thread.wakeMs : (thread.wakeMs * asleepMs) / thread.deepSleepMs;
      thread.virtualMs = Math.max(thread.virtualMs, leastVirtualMs - SLICE_MS);
      ready.push(thread);
      if (running.size === count) preempt(thread);
      schedule();
    },
  };
}
