import { Rescheduled, Suspended } from "../jobs/reschedule.ts";
import { AppError, type ErrorView, Pause } from "../lib/errors.ts";
import { MAX_TIMER_MS } from "../lib/with-timeout.ts";

/** Thrown by a step that waits for what others bring about, and not for a person. */
export class Waiting extends Suspended {
  override name = "Waiting";
  /** When that is over at the latest, in ms since 1970. */
  readonly at: number;

  constructor(isOver: () => Promise<boolean>, at = Number.POSITIVE_INFINITY) {
    super(isOver);
    this.at = at;
  }
}

/** Thrown by a step that is to be attempted again later. */
export class Later extends Pause {
  override name = "Later";
  readonly afterMs: number;

  constructor(afterMs: number) {
    super("to be attempted again");
    this.afterMs = afterMs;
  }
}

/** Unwinds a run whose turn is over: none of its steps can go on now. Those that wait are parked. */
export class TurnOver extends Pause {
  override name = "TurnOver";
}

/** Unwinds a run that a step ends early. */
export class RunEnds extends Pause {
  override name = "RunEnds";
  readonly status: "rejected" | "expired";

  constructor(status: "rejected" | "expired") {
    super(`the run is ${status}`);
    this.status = status;
  }
}

/** Unwinds steps around one that has failed for good; its record has the error. */
export class StepFailed extends Error {
  override name = "StepFailed";
  readonly error: ErrorView;

  constructor(error: ErrorView) {
    super(error.message);
    this.error = error;
  }
}

/** How often what a step waits for is looked at while others of its run are at work, in ms. */
const LOOK_EVERY_MS = 500;

/** `at`: when it is over in any case. */
type Parked = { isOver: () => Promise<boolean>; at: number; isTime: boolean; go: () => void; end: () => void };

/** Begins a wait until a time, and tells how to see whether it is over. */
type WaitUntil = (until: Date) => Promise<() => Promise<boolean>>;

export type Turn = ReturnType<typeof makeTurn>;

/**
 * A worker's turn at a run: which of its steps are at work, and which wait. Those that wait are looked at while others work; once
 * none works, all are unwound, and the run waits for whichever is over first. `shortMs`, `longMs`: how long a turn lasts, with
 * one step at work and with several.
 */
export function makeTurn({ shortMs, longMs, signal }: { shortMs: number; longMs: number; signal: AbortSignal }) {
  const beganAt = performance.now();
  const parked = new Set<Parked>();
  let working = 1;
  let done = 0;
  let isOver = false;
  const close = () => {
    isOver = true;
    for (const { end } of parked) end();
  };
  const closeIfIdle = () => {
    if (working <= 0 && parked.size > 0) close();
  };
  const leave = () => {
    working -= 1;
    setImmediate(closeIfIdle); // what ends may be followed by what begins
  };
  return {
    isOver: () => isOver,
    /** Counts a step that has been done. */
    did(): void {
      done += 1;
    },
    /** Counts a flow of steps that begins, and one that ends or has others work for it. */
    enter(): void {
      working += 1;
    },
    leave,
    /** @throws TurnOver when others are to have a turn; the signal's reason. */
    check(): void {
      signal.throwIfAborted();
      if (!isOver && done > 0 && performance.now() - beganAt > (working > 1 ? longMs : shortMs)) close();
      if (isOver) throw new TurnOver();
    },
    /** Returns when what a step waits for is over. `until`: when its time is. @throws TurnOver; the signal's reason. */
    async park(pause: Suspended | Later, until = Number.POSITIVE_INFINITY): Promise<void> {
      const isTime = pause instanceof Later;
      const at = isTime ? Date.now() + pause.afterMs : until;
      const soonAt = pause instanceof Waiting ? pause.at : at;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const one: Parked = {
        isOver: isTime ? async () => false : pause.isOver,
        ...{ at: Math.min(at, until), isTime },
        go() {
          if (parked.delete(one)) working += 1;
          resolve();
        },
        end: () => reject(new TurnOver()),
      };
      parked.add(one);
      if (isOver) throw new TurnOver();
      const stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop);
      const look = async () => {
        if (one.at <= Date.now() || soonAt <= Date.now() || (await one.isOver())) one.go();
      };
      const timer = setInterval(() => void look().catch(reject), LOOK_EVERY_MS);
      const soon = setTimeout(() => void look().catch(reject), Math.min(clampMs(soonAt - Date.now()), LOOK_EVERY_MS));
      leave();
      try {
        await promise;
      } finally {
        clearInterval(timer);
        clearTimeout(soon);
        signal.removeEventListener("abort", stop);
      }
    },
    /** What the work of the run's job throws now. */
    async toPause(waitUntil: WaitUntil): Promise<Pause> {
      const waits = [...parked].filter(({ isTime }) => !isTime);
      const first = Math.min(...[...parked].map(({ at }) => at));
      if (parked.size === 0) return new Rescheduled(0, "queued");
      if (waits.length === 0) return new Rescheduled(Math.max(0, first - Date.now()), "queued");
      const asks = waits.map((one) => one.isOver);
      if (first < Number.POSITIVE_INFINITY) asks.push(await waitUntil(new Date(first)));
      return new Suspended(async () => (await Promise.all(asks.map((ask) => ask()))).some((over) => over));
    },
  };
}

/** Aborts with the error of a step whose time is over; `at`: when that is, in ms since 1970. Call `stop` at the step's end. */
export function makeDeadline(signal: AbortSignal, at: number) {
  const own = new AbortController();
  const { timer, stop } = {
    timer: setTimeout(() => own.abort(timedOut()), clampMs(at - Date.now())),
    stop: () => clearTimeout(timer),
  };
  return { signal: AbortSignal.any([signal, own.signal]), stop };
}

const clampMs = (ms: number) => Math.min(Math.max(0, ms), MAX_TIMER_MS);

export const timedOut = () => new AppError("timeout", "The step took longer than it may.");
