import { setTimeout as delay } from "node:timers/promises";

/**
 * Makes many reads of one kind few: one runs at a time, at least `gapMs` after the one before it began, and reads all keys
 * that were asked for since. A read that none precedes begins at once. The result is undefined for a key that is not found.
 */
export function gatherReads<V>(readAll: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>, gapMs: number) {
  let keys = new Set<string>();
  let next: Promise<ReadonlyMap<string, V>> | undefined;
  let isFree: Promise<unknown> = Promise.resolve();

  const readNext = async () => {
    await isFree;
    const gathered = [...keys];
    keys = new Set();
    next = undefined;
    const reading = readAll(gathered);
    isFree = Promise.allSettled([reading, delay(gapMs, undefined, { ref: false })]);
    return reading;
  };
  return async (key: string): Promise<V | undefined> => {
    keys.add(key);
    next ??= readNext();
    return (await next).get(key);
  };
}
