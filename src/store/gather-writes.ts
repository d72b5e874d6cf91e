/**
 * Makes many writes of one kind few: one runs at a time, and the next one writes all that came meanwhile, at most `most` at
 * once. Each call resolves when its own item is written, and throws what the write of its group throws.
 */
export function gatherWrites<T>(writeAll: (items: readonly T[]) => Promise<unknown>, most: number) {
  let group: { items: T[]; written: Promise<void> } | undefined;
  let isFree = Promise.resolve();

  const write = async (items: readonly T[]) => {
    await isFree;
    await endOfTurn();
    if (group?.items === items) group = undefined;
    await writeAll(items);
  };
  const openGroup = () => {
    const items: T[] = [];
    const written = write(items);
    isFree = written.catch(() => undefined); // thrown to the callers of its items
    return { items, written };
  };
  return async (item: T): Promise<void> => {
    if (group === undefined || group.items.length === most) group = openGroup();
    group.items.push(item);
    await group.written;
  };
}

/** When what is ready to run has run, so that what comes at the same time is written together. */
const endOfTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
