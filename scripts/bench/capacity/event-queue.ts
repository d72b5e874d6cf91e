/** What is to happen, by its time: a binary heap. Events of the same time come in the order in which they were added. */
export function makeEventQueue<T>() {
  const heap: { at: number; order: number; event: T }[] = [];
  let added = 0;
  const isBefore = (a: number, b: number) => {
    const [first, second] = [heap[a], heap[b]];
    if (!first || !second) return first !== undefined;
    return first.at === second.at ? first.order < second.order : first.at < second.at;
  };
  const swap = (a: number, b: number) => {
    const [first, second] = [heap[a], heap[b]];
    if (first && second) [heap[a], heap[b]] = [second, first];
  };
  return {
    add(at: number, event: T): void {
      heap.push({ at, order: added++, event });
      for (let child = heap.length - 1; child > 0; ) {
        const parent = (child - 1) >> 1;
        if (!isBefore(child, parent)) return;
        swap(child, parent);
        child = parent;
      }
    },
    /** The next event, taken out; undefined when there is none. */
    take(): { at: number; event: T } | undefined {
      const first = heap[0];
      const last = heap.pop();
      if (!first || !last || heap.length === 0) return first;
      heap[0] = last;
      for (let parent = 0; ; ) {
        const [left, right] = [2 * parent + 1, 2 * parent + 2];
        const least = isBefore(right, left) ? right : left;
        if (least >= heap.length || !isBefore(least, parent)) return first;
        swap(least, parent);
        parent = least;
      }
    },
  };
}
