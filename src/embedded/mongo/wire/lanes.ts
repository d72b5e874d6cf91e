import { type Document, isDocument } from "../bson/bson-types.ts";

/** Messages above this are long work, in bytes: they bring chunks and pieces of sources. */
const LARGE_BYTES = 16 << 10;
/** Longest time in which long work shares one commit, in ms: a commit costs as much as a small message. */
const SHARED_MS = 30;

/** Whether a command may take long: it is large, it continues a list, or it changes all documents that it finds. */
export function isLong(command: Document, bytes: number): boolean {
  const parts = [command.deletes, command.updates].flat();
  return bytes > LARGE_BYTES || "getMore" in command || parts.some(changesMany);
}

const changesMany = (part: unknown) => isDocument(part) && (part.limit === 0 || part.multi === true);

/**
 * Lets short work run at once, and long work one message a turn of the event loop: a bulk load holds up another client by one
 * message at most, however many wait. Messages of one connection keep their order. What waits is bounded by the connections,
 * since a driver sends nothing on one before it has the answer. `flush` commits what long work wrote; a short message
 * that comes between does so on its own.
 */
export function makeLanes(flush: () => void) {
  const long: { connectionId: number; run: () => void }[] = [];
  let begunAt = Number.NaN;
  const runNext = () => {
    long[0]?.run();
    long.shift(); // only now: until it has run, its connection's next message must wait
    if (long.length === 0 || performance.now() - begunAt > SHARED_MS) {
      flush();
      begunAt = performance.now();
    }
    if (long.length > 0) setImmediate(runNext);
  };
  return {
    /** `run` is called with whether its writes are committed by `flush`. */
    admit(message: { connectionId: number; isLong: boolean }, run: (isFlushed: boolean) => void): void {
      const { connectionId } = message;
      if (!message.isLong && !long.some((waiting) => waiting.connectionId === connectionId)) {
        run(false);
        return;
      }
      long.push({ connectionId, run: () => run(true) });
      if (long.length > 1) return;
      begunAt = performance.now();
      setImmediate(runNext);
    },
    /** Runs all that waits. */
    drain(): void {
      for (const { run } of long.splice(0)) run();
      flush();
    },
  };
}

export type Lanes = ReturnType<typeof makeLanes>;
