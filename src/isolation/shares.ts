/** Bounds what runs at once: `size` places, `perOwner` for one owner, whose further requests let others go first. */
export function makeShares({ size, perOwner }: { size: number; perOwner: number }) {
  const held: string[] = [];
  const waiting: { owner: string; atMost: number; wake(): void }[] = [];

  const hasRoom = (owner: string, atMost: number) =>
    held.length < size && held.filter((each) => each === owner).length < atMost;
  const wakeNext = () => {
    const place = waiting.findIndex(({ owner, atMost }) => hasRoom(owner, atMost));
    if (place >= 0) waiting.splice(place, 1)[0]?.wake();
  };
  const leave = (owner: string) => {
    held.splice(held.indexOf(owner), 1);
    wakeNext();
  };
  return {
    /** Waits until the owner has fewer than `atMost` places, and returns how its new one is given up. @throws the signal's reason. */
    async enter(owner: string, signal: AbortSignal, atMost = perOwner): Promise<() => void> {
      signal.throwIfAborted();
      while (!hasRoom(owner, atMost)) {
        const { promise, resolve } = Promise.withResolvers<void>();
        const wake = () => resolve();
        const entry = { owner, atMost, wake };
        waiting.push(entry);
        signal.addEventListener("abort", wake, { once: true });
        await promise;
        signal.removeEventListener("abort", wake);
        if (!signal.aborted) continue;
        const place = waiting.indexOf(entry);
        if (place >= 0) waiting.splice(place, 1);
        else wakeNext(); // its turn had come, and passes on
        signal.throwIfAborted();
      }
      held.push(owner);
      return () => leave(owner);
    },
  };
}
