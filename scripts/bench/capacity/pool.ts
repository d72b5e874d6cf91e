/** Work that waits for a place; a smaller priority comes first, and of the same one who came first. */
type Waiting = { priority: number; begin: (holder: number) => void };

/**
 * Places that jobs hold while they run, as those of workers on a queue: who finds none waits by priority.
 * A worker that has more free places than another comes first.
 */
export function makePool(places: { holders: number; each: number }) {
  const taken = Array.from({ length: places.holders }, () => 0);
  const waiting: Waiting[] = [];
  const freest = () => {
    const least = Math.min(...taken);
    return least < places.each ? taken.indexOf(least) : undefined;
  };
  const hold = (holder: number, begin: Waiting["begin"]) => {
    taken[holder] = (taken[holder] ?? 0) + 1;
    begin(holder);
  };
  return {
    /** Calls `begin` with the number of the holder of a place, now or when one is free. */
    enter(priority: number, begin: (holder: number) => void): void {
      const holder = freest();
      if (holder !== undefined) hold(holder, begin);
      else waiting.splice(waiting.findLastIndex((other) => other.priority <= priority) + 1, 0, { priority, begin });
    },
    /** Gives the place back to the one that waits first. */
    leave(holder: number): void {
      taken[holder] = (taken[holder] ?? 0) - 1;
      const next = waiting.shift();
      if (next) hold(holder, next.begin);
    },
    waits: () => waiting.length,
  };
}
