import { isPassing } from "./api.js";
import { RECOVERED } from "./connection.js";

/**
 * Turns of what the page reads again by itself: one at a time, at most two a second in all, and one a second of each. What fails
 * for a while is tried again, later each time.
 */

const [ANY_MS, SAME_MS] = [500, 1_000];
const [FIRST_RETRY_MS, MAX_RETRY_MS] = [2_000, 30_000];

/** @typedef {{ work: () => Promise<unknown>, everyMs: number, notBefore: number, failures: number }} Turn */

/** @type {Set<Turn>} */
const waiting = new Set();
let isBusy = false;
let lastAt = Number.NEGATIVE_INFINITY;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

function next() {
  clearTimeout(timer);
  if (isBusy) return;
  const [turn] = [...waiting].sort((a, b) => a.notBefore - b.notBefore);
  if (turn === undefined) return;
  const leftMs = Math.max(turn.notBefore, lastAt + ANY_MS) - performance.now();
  if (leftMs === Number.POSITIVE_INFINITY) return;
  if (leftMs > 0) timer = setTimeout(next, leftMs);
  else take(turn);
}

/** @param {Turn} turn */
async function take(turn) {
  waiting.delete(turn);
  isBusy = true;
  lastAt = performance.now();
  await attempt(turn);
  isBusy = false;
  next();
}

/** @param {Turn} turn */
async function attempt(turn) {
  turn.notBefore = performance.now() + turn.everyMs;
  try {
    await turn.work();
    turn.failures = 0;
  } catch (error) {
    if (/** @type {any} */ (error).status === 401) {
      turn.notBefore = Number.POSITIVE_INFINITY; // until somebody has signed in
      waiting.add(turn);
    }
    if (!isPassing(error)) return; // the page shows it
    const wait = Math.min(FIRST_RETRY_MS * 2 ** turn.failures, MAX_RETRY_MS);
    turn.failures += 1;
    turn.notBefore = performance.now() + wait * (0.75 + Math.random() / 2);
    waiting.add(turn);
  }
}

/**
 * What reads something again. `work` throws what its request throws.
 * @param {() => Promise<unknown>} work
 * @param {number} [everyMs] the least time between two of its turns
 */
export function makeTurn(work, everyMs = SAME_MS) {
  let isOver = false;
  /** @type {Turn} */
  const turn = { work: async () => (isOver ? undefined : work()), everyMs, notBefore: 0, failures: 0 };
  return {
    /** At once: a person waits for it. */
    begin: () => {
      waiting.delete(turn);
      return attempt(turn).then(next);
    },
    /** In its turn; an earlier one that still waits is the same. */
    ask: () => {
      if (isOver) return;
      if (turn.notBefore === Number.POSITIVE_INFINITY) turn.notBefore = 0;
      waiting.add(turn);
      next();
    },
    end: () => {
      isOver = true;
      waiting.delete(turn);
    },
  };
}

window.addEventListener(RECOVERED, () => {
  for (const turn of waiting) turn.notBefore = 0;
  next();
});
