import type { Engine } from "./commands/command.ts";
import { findRows } from "./query/query.ts";
import { removeDocument } from "./storage/documents.ts";
import type { Dispatcher } from "./wire/dispatch.ts";

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
  const indexes = engine.catalog.list().flatMap(({ searchIndexes }) => searchIndexes);
  let next: NodeJS.Immediate | undefined;
  const step = () => {
    const [index] = indexes;
    if (index === undefined) return;
    try {
      if (index.vectors?.readMore() !== false) indexes.shift();
    } catch (error) {
      engine.logger.error({ err: error, index: index.name }, "the vectors of a search index could not be read");
      indexes.shift();
    }
    next = setImmediate(step);
  };
  step();
  return () => clearImmediate(next);
}

/** Most documents of one index that are removed at a time: the next round removes more, and others are served in between. */
const maxPerRound = 1_000;

/** Removes documents whose date under a TTL index is past. A document without a date there is kept. */
function removeExpired(engine: Engine): void {
  for (const collection of engine.catalog.list()) {
    for (const { expireAfterSeconds: seconds, paths, partialFilter = {} } of collection.indexes) {
      if (seconds === undefined) continue;
      const isOver = { [paths.join()]: { $lt: new Date(Date.now() - seconds * 1000) } }; // of one path
      const expired = findRows(collection, { filter: { $and: [partialFilter, isOver] }, limit: maxPerRound });
      for (const row of [...expired]) removeDocument(engine.storage, collection, row);
    }
  }
}
