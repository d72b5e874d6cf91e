import { LRUCache } from "lru-cache";
import { jittered } from "../lib/jitter.ts";

/** Messages in a row that got no answer until their receiver is left alone, and for how long, in ms: twice as long each time. */
const FAILURES_TO_PAUSE = 5;
const FIRST_PAUSE_MS = 30_000;
const MAX_PAUSE_MS = 600_000;
const MAX_RECEIVERS = 10_000;

export type Pauses = ReturnType<typeof makePauses>;

/** Which receivers are left alone for a while, since nothing there answers. After a pause one failure is enough for the next. */
export function makePauses(now: () => number = Date.now) {
  const receivers = new LRUCache<string, { failures: number; until: number }>({ max: MAX_RECEIVERS });
  return {
    /** When a receiver may be called again, in ms since the epoch; undefined: now. */
    until(receiver: string): number | undefined {
      const until = receivers.get(receiver)?.until ?? 0;
      return until > now() ? until : undefined;
    },
    failed(receiver: string): void {
      const failures = (receivers.get(receiver)?.failures ?? 0) + 1;
      const pauses = failures - FAILURES_TO_PAUSE;
      const pauseMs = pauses < 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** pauses, MAX_PAUSE_MS);
      receivers.set(receiver, { failures, until: pauseMs === 0 ? 0 : now() + jittered(pauseMs) });
    },
    succeeded: (receiver: string) => void receivers.delete(receiver),
  };
}
