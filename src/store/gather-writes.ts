import { setImmediate as endOfTurn } from "node:timers/promises";

/** How many items one write brings at most, and how long after the begin of one write the next one begins at the earliest, in ms. */
type GatherLimits = { most: number; everyMs: number };

/**
 * Makes many writes of one kind few: one runs at a time, and the next one writes all that came meanwhile. `add` resolves when
 * its own item is written, and throws what the write of its group throws. `hurry` lets the next write begin as soon as none runs.
 */
export function gatherWrites<T>(writeAll: (items: readonly T[]) => Promise<unknown>, { most, everyMs }: GatherLimits) {
  let group: { items: T[]; written: Promise<void> } | undefined;
  let isFree = Promise.resolve();
  let notBefore = 0;
  let endWait = () => {};

  const wait = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const write = async (items: readonly T[]) => {
    await isFree;
    const waitMs = notBefore - performance.now();
    await (waitMs > 0 ? wait(waitMs) : endOfTurn()); // items that arrive at the same time are written together
    notBefore = performance.now() + everyMs;
    if (group?.items === items) group = undefined;
    await writeAll(items);
  };
  const openGroup = () => {
    const items: T[] = [];
    const written = write(items);
    isFree = written.catch(() => undefined); // thrown to the callers of its items
    return { items, written };
  };
  return {
    add(item: T): Promise<void> {
      if (group === undefined || group.items.length === most) group = openGroup();
      group.items.push(item);
      return group.written; // one promise for a whole group, since a promise for each item would cost as much as the item
    },
    hurry(): void {
      notBefore = 0;
      endWait();
    },
  };
}
