/** Calls that have their turn at a time, and the time to the next ones, in ms: 800 calls a second. */
const CALLS_A_TURN = 8;
const TURN_MS = 10;
/** Calls that wait, at most: each holds its head in memory. */
const MAX_WAITING = 1_000;

export type TakeTurn = ReturnType<typeof makeTurns>;

/**
 * Makes a queue for calls that anybody can make and that no rate limits. Few of them have their turn at a time, so that those
 * of tenants need not wait until a flood is answered; as long as there are few, none waits. The result is false for a call
 * that there is no room for, because too many wait.
 */
export function makeTurns({ callsATurn = CALLS_A_TURN, turnMs = TURN_MS, maxWaiting = MAX_WAITING } = {}) {
  const waiting: ((hasTurn: boolean) => void)[] = [];
  let left = callsATurn;
  let turns: NodeJS.Timeout | undefined;
  const beginNext = () => {
    const next = waiting.splice(0, callsATurn);
    left = callsATurn - next.length;
    for (const begin of next) begin(true);
    if (next.length > 0) return;
    clearInterval(turns);
    turns = undefined;
  };
  return async function takeTurn(): Promise<boolean> {
    turns ??= setInterval(beginNext, turnMs).unref();
    if (left > 0) {
      left -= 1;
      return true;
    }
    if (waiting.length >= maxWaiting) return false;
    return new Promise((resolve) => waiting.push(resolve));
  };
}
