/** Regroups arrays of any length into arrays of `size`; the last may be shorter. */
export async function* inBatches<T>(source: AsyncIterable<readonly T[]>, size: number): AsyncGenerator<T[]> {
  let held: T[] = [];
  for await (const items of source) {
    held.push(...items);
    while (held.length >= size) {
      yield held.slice(0, size);
      held = held.slice(size);
    }
  }
  if (held.length > 0) yield held;
}

/**
 * Maps with up to `concurrency` calls in flight and yields the results in order. It reads from the source only as fast as
 * results are consumed. When a call fails, the others are awaited before the error is thrown: none runs on in the background.
 */
export async function* mapOrdered<T, R>(
  source: AsyncIterable<T>,
  concurrency: number,
  map: (item: T) => Promise<R>,
): AsyncGenerator<R> {
  const flying: Promise<R>[] = [];
  try {
    for await (const item of source) {
      const call = map(item);
      call.catch(() => undefined); // awaited below, where its error is thrown
      flying.push(call);
      if (flying.length >= concurrency) yield await (flying.shift() as Promise<R>); // just seen not to be empty
    }
    for (let call = flying.shift(); call; call = flying.shift()) yield await call;
  } finally {
    await Promise.allSettled(flying);
  }
}
