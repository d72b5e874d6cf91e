import { fromAbort } from "../resilience/transport-errors.ts";

/** `active` callers try to take, or hold what they took; each of `waiting` is woken by its function. */
type Group = { active: number; returns: number; waiting: (() => void)[] };

type TurnOptions = { signal: AbortSignal; waitMs: number; maxWaiting: number };

/** Groups of callers, each group sharing one supply. A caller that finds nothing left waits until another one returns some. */
export function makeTurns() {
  const groups = new Map<string, Group>();

  const wakeNext = (group: Group) => {
    const wake = group.waiting.shift();
    if (wake === undefined) return;
    group.active += 1; // already now, so that the group does not look abandoned before the woken one runs
    wake();
  };
  const leave = (name: string, group: Group) => {
    group.active -= 1;
    wakeNext(group);
    if (group.active === 0) groups.delete(name);
  };
  const tryInTurn = async <T>(
    group: Group,
    { signal, waitMs, maxWaiting }: TurnOptions,
    attempt: () => Promise<T | undefined>,
  ): Promise<T | undefined> => {
    const until = performance.now() + waitMs;
    let hasWaited = false;
    for (;;) {
      const { returns } = group;
      const taken = await attempt();
      if (taken !== undefined) return taken;
      if (signal.aborted) throw fromAbort(signal);
      if (group.returns !== returns) continue; // something came back during the attempt
      const leftMs = until - performance.now();
      if (group.active === 1 || leftMs <= 0) return undefined;
      if (!hasWaited && group.waiting.length >= maxWaiting) return undefined;
      group.active -= 1;
      await untilWoken(group, { signal, leftMs, hasWaited });
      hasWaited = true;
    }
  };
  return {
    /**
     * What `attempt` takes. While it takes nothing, and another caller of the group holds something, it is tried again when
     * that one releases; undefined when no caller holds anything, when `maxWaiting` wait already, or when `waitMs` are over.
     * @throws what `attempt` throws, or the signal's error.
     */
    async take<T>(name: string, options: TurnOptions, attempt: () => Promise<T | undefined>): Promise<T | undefined> {
      const group = groups.get(name) ?? { active: 0, returns: 0, waiting: [] };
      groups.set(name, group);
      group.active += 1;
      try {
        const taken = await tryInTurn(group, options, attempt);
        if (taken === undefined) leave(name, group);
        else wakeNext(group); // there may be more
        return taken;
      } catch (error) {
        leave(name, group);
        throw error;
      }
    },
    /** Call this once for each successful take, when the amount is returned. */
    release(name: string): void {
      const group = groups.get(name);
      if (group === undefined) return;
      group.returns += 1;
      leave(name, group);
    },
  };
}

/** Waits in the queue. A caller that has waited before returns to its front. The caller counts as active once this resolves. */
function untilWoken(
  group: Group,
  { signal, leftMs, hasWaited }: { signal: AbortSignal; leftMs: number; hasWaited: boolean },
): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = () => {
      group.waiting.splice(group.waiting.indexOf(wake), 1);
      group.active += 1;
      wake();
    };
    const timer = setTimeout(giveUp, leftMs);
    signal.addEventListener("abort", giveUp, { once: true });
    if (hasWaited) group.waiting.unshift(wake);
    else group.waiting.push(wake);
  });
}
