import type { IncomingMessage } from "node:http";

/** What of a refused body is taken at once: with what the network holds, a small body as a whole. In bytes. */
const AT_ONCE_BYTES = 256 << 10;
/** Chunks, of 64 KiB mostly, that are then taken in each turn of all such bodies together: 5 MiB a second. */
const CHUNKS_A_TURN = 4;
const TURN_MS = 50;

/**
 * Takes the rest of refused bodies, since many clients read the response only when they have sent theirs. It is discarded at
 * a pace that costs little, however many there are: at full speed, refused uploads would cost as much as others.
 */
export function makeDiscard({ turnMs = TURN_MS } = {}): (request: IncomingMessage) => void {
  const paused = new Set<IncomingMessage>();
  let turns: NodeJS.Timeout | undefined;
  const takeTurn = () => {
    for (const request of [...paused].slice(0, CHUNKS_A_TURN)) {
      paused.delete(request); // its next chunk puts it behind the others
      request.resume();
    }
    if (paused.size > 0) return;
    clearInterval(turns);
    turns = undefined;
  };
  return function discard(request) {
    let atOnce = AT_ONCE_BYTES;
    request.on("data", (chunk: Buffer) => {
      atOnce -= chunk.length;
      if (atOnce > 0) return;
      request.pause();
      paused.add(request);
      turns ??= setInterval(takeTurn, turnMs).unref();
    });
    request.once("close", () => paused.delete(request));
    request.read(0); // it is being read from now on: otherwise Node takes the rest itself, as fast as it comes
    request.resume();
  };
}
