import { setTimeout as delay } from "node:timers/promises";

/**
 * Asks `check` again and again until it answers something other than null, undefined or false, and returns that.
 * @throws Error that names `what` when `timeoutMs` has passed.
 */
export async function pollUntil<T>(
  check: () => Promise<T> | T,
  options: { what?: string; timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const timeoutMs = options.timeoutMs ?? 20_000;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await check();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline)
      throw new Error(`${options.what ?? "what was waited for"}: not within ${timeoutMs} ms`);
    await delay(options.everyMs ?? 10);
  }
}
