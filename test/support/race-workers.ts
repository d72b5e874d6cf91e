import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire } from "node:module";
import { loadConfig } from "../../src/config/config.ts";
import { Rescheduled, Suspended } from "../../src/jobs/reschedule.ts";
import type { Work, WorkContext } from "../../src/jobs/work.ts";
import { openPlatform, type Platform } from "../../src/platform.ts";
import { judge, type Verdict } from "../../workers/verdict.ts";
import type { TestPlatform } from "./start-platform.ts";
import { workContext } from "./work-context.ts";

type Command = (...given: readonly unknown[]) => Promise<unknown>;
/** Called before each command that a task sends to MongoDB. */
type Watch = () => Promise<void>;

const watching = new AsyncLocalStorage<Watch>();

// The one place that every command of the driver comes through, whatever the operation.
const { Connection } = createRequire(import.meta.url)("mongodb/lib/cmap/connection.js") as {
  Connection: { prototype: { command: Command } };
};
const { command } = Connection.prototype;
Connection.prototype.command = async function watched(this: unknown, ...given) {
  await watching.getStore()?.();
  return command.apply(this, [...given]);
};

type FrozenTask = {
  /** It is frozen, or has ended. */
  reached: Promise<unknown>;
  isFrozen(): boolean;
  /** Lets it go on to its end. */
  goOn(): Promise<unknown>;
};

/** Begins a task that is frozen before its nth command to MongoDB, where 0 is its first. */
function startFrozen(task: () => Promise<unknown>, nth: number): FrozenTask {
  const [frozen, thawed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let sent = 0;
  let isFrozen = false;
  const watch = async () => {
    sent += 1;
    if (sent <= nth) return;
    isFrozen = true;
    frozen.resolve();
    await thawed.promise;
  };
  const ended = watching.run(watch, task);
  return {
    reached: Promise.race([frozen.promise, ended]),
    isFrozen: () => isFrozen,
    goOn: () => {
      thawed.resolve();
      return ended;
    },
  };
}

type Begun = Pick<WorkContext, "tenantId" | "recordId" | "jobId">;
type Race<B> = {
  test: TestPlatform;
  /** Accepts a new piece of work, which no worker takes. */
  begin(): Promise<B>;
  work(platform: Platform): Work;
  /**
   * Before which of its commands the other is frozen too, while the first one goes on to its end; then it goes on, and after it
   * the job is run once more. Absent: it is never frozen.
   */
  otherAt?(nth: number): number;
  /** The last command before which the first is frozen; absent: the last that it sends. */
  upTo?: number;
  /** How many commands further it is frozen than in the race before; 1 unless it says otherwise. */
  every?: number;
  /** Looks at what became of it. `ends`: of the worker that was frozen, of the other, and of the run after both. */
  check(begun: B, ends: { frozen: unknown; other: unknown; last?: unknown }, at: number): Promise<void>;
};

/**
 * Runs a kind of work by two workers at once, again and again: one is frozen before its first command to MongoDB, then before
 * its second, and so on, while the other runs the work to its end; then the first goes on, and never learns that it had lost
 * the job. Resolves with the number of its commands, to the next multiple of `every`.
 */
export async function raceWorkers<B extends Begun>({
  test,
  begin,
  work,
  otherAt,
  upTo,
  every = 1,
  check,
}: Race<B>): Promise<number> {
  const other = await openPlatform(loadConfig(test.env), { name: "other", logger: test.platform.logger });
  try {
    for (let nth = 0; ; nth += every) {
      const begun = await begin();
      const run = (platform: Platform) => runOnce(work(platform), workContext({ platform }, begun));
      const task = startFrozen(() => run(test.platform), nth);
      await task.reached;
      const isOver = !task.isFrozen();
      const second = isOver ? undefined : startFrozen(() => run(other), otherAt?.(nth) ?? Number.POSITIVE_INFINITY);
      await second?.reached;
      const ends = { frozen: await task.goOn(), other: await second?.goOn() };
      await check(begun, otherAt ? { ...ends, last: await run(other) } : ends, nth);
      if (isOver || nth === upTo) return nth;
    }
  } finally {
    await other.close();
  }
}

/** What becomes of a job whose last attempt ends so: `release` gives it back unharmed, to be run again. */
export function outcomeOf(end: unknown): "completed" | "suspend" | Verdict["outcome"] {
  if (!(end instanceof Error)) return "completed";
  if (end instanceof Suspended) return "suspend";
  if (end instanceof Rescheduled) return "release";
  return judge({ error: end, stopped: undefined, failures: 1, attempts: 1, backoffMs: 0, random: Math.random }).outcome;
}

/** How a run of the work ends: what it returns, or the error. */
const runOnce = (work: Work, context: WorkContext) => work.run(context).catch((error: unknown) => error);
