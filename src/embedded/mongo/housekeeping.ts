import type { Dispatcher } from "./dispatch.ts";
import type { Engine } from "./engine.ts";
import { removeExpired } from "./ttl.ts";

/** How often expired documents are removed and idle cursors closed. MongoDB does it once a minute. */
const intervalMs = 1_000;

/** Starts the periodic work of the server; the answer stops it. */
export function startHousekeeping(engine: Engine, dispatcher: Dispatcher): () => void {
  const timer = setInterval(() => {
    engine.cursors.expire();
    dispatcher.perform(() => removeExpired(engine));
  }, intervalMs);
  timer.unref();
  const stopReading = readVectors(engine);
  return () => {
    clearInterval(timer);
    stopReading();
  };
}

/** Reads the vectors of all search indexes bit by bit, so that the first search need not. */
function readVectors(engine: Engine): () => void {
  const indexes = engine.catalog
    .databases()
    .flatMap((db) =>
      engine.catalog
        .list(db)
        .flatMap(({ searchIndexes }) => searchIndexes.filter(({ type }) => type === "vectorSearch")),
    );
  let next: NodeJS.Immediate | undefined;
  const step = () => {
    const [index] = indexes;
    next = undefined;
    if (index === undefined) return;
    try {
      if (index.type !== "vectorSearch" || index.vectors.readMore()) indexes.shift();
    } catch (error) {
      engine.logger.error({ err: error, index: index.name }, "the vectors of a search index could not be read");
      indexes.shift();
    }
    next = setImmediate(step);
  };
  step();
  return () => {
    if (next !== undefined) clearImmediate(next);
  };
}
