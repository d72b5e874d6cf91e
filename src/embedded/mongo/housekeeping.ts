import type { Dispatcher } from "./dispatch.ts";
import type { Engine } from "./engine.ts";
import { removeExpired } from "./ttl.ts";

/** How often expired documents are removed and idle cursors closed. MongoDB does it once a minute. */
const intervalMs = 1_000;

/** Starts the periodic work of the server; the answer stops it. */
export function startHousekeeping(engine: Engine, dispatcher: Dispatcher): () => void {
  const timer = setInterval(() => {
    engine.cursors.expire();
    try {
      removeExpired(engine);
    } catch (error) {
      engine.logger.error({ err: error }, "expired documents could not be removed");
    }
    dispatcher.flush();
  }, intervalMs);
  timer.unref();
  return () => clearInterval(timer);
}
