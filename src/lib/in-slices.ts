import { setTimeout as delay, setImmediate } from "node:timers/promises";

/**
 * How long work holds up everything else of this process at a time, in ms. A call of another tenant waits for that at each of
 * its steps, a job at some ten.
 */
const SLICE_MS = 4;
/** Slices of work that follow each other without a pause. */
const QUICK_SLICES = 5;
/** Characters that work looks at between two places where others may have their turn: half a millisecond or so. */
const CHARACTERS_AT_ONCE = 16_384;

/**
 * Does work that takes long, of which each `yield` is a place where others may have their turn. Work of more than some slices
 * pauses after each for as long: it takes half of the time at most, whoever else has work. @throws the signal's reason.
 */
export async function inSlices<T>(work: Iterator<void, T>, signal?: AbortSignal): Promise<T> {
  let until = performance.now() + SLICE_MS;
  for (let slices = 1; ; ) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < until) continue;
    await (slices < QUICK_SLICES ? setImmediate() : delay(SLICE_MS));
    signal?.throwIfAborted();
    slices += 1;
    until = performance.now() + SLICE_MS;
  }
}

/**
 * The same items in groups, of which each is read in one turn of some milliseconds; `share` waits for it. Others have theirs
 * between two groups. @throws what `items` and `share` throw.
 */
export async function* groupsInTurns<T>(
  items: AsyncIterable<T>,
  share: <R>(part: () => Promise<R>) => Promise<R>,
): AsyncGenerator<T[]> {
  const iterator = items[Symbol.asyncIterator]();
  let isOver = false;
  const readGroup = async () => {
    const group: T[] = [];
    for (const until = performance.now() + SLICE_MS; !isOver && performance.now() < until; ) {
      const next = await iterator.next();
      if (next.done) isOver = true;
      else group.push(next.value);
    }
    return group;
  };
  try {
    while (!isOver) {
      yield await share(readGroup);
      await setImmediate();
    }
  } finally {
    await iterator.return?.();
  }
}

/** Says of work that looks at texts when the next place is due, by the characters of each that it looks at. */
export function makeTextMeter(): (characters: number) => boolean {
  let seen = 0;
  return (characters) => {
    seen += characters + 1; // an empty text is work too
    if (seen < CHARACTERS_AT_ONCE) return false;
    seen = 0;
    return true;
  };
}

/** The parts of a text that are looked at between two such places. They end at a blank where there is one. */
export function* partsOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const wide = text.slice(from, from + 2 * CHARACTERS_AT_ONCE);
    const blank = wide.indexOf(" ", CHARACTERS_AT_ONCE);
    const part = blank < 0 ? wide : wide.slice(0, blank);
    yield part;
    from += part.length;
  }
}
