import type { Engine } from "./engine.ts";
import { planIndex } from "./query/planner.ts";
import { runPlan } from "./query/scan.ts";
import type { Collection, Index } from "./storage/collection.ts";
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
  const indexes = engine.catalog
    .all()
    .flatMap(({ searchIndexes }) => searchIndexes.filter(({ type }) => type === "vectorSearch"));
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

/** So many documents of one index at a time: the next round goes on, and others are served in between. */
const maxPerRound = 1_000;

/** Removes documents whose date under a TTL index is past. A document without a date there stays for ever. */
function removeExpired(engine: Engine): void {
  for (const collection of engine.catalog.all()) {
    for (const index of collection.indexes) {
      if (index.expireAfterSeconds !== undefined) removeExpiredOf(engine, collection, index, index.expireAfterSeconds);
    }
  }
}

function removeExpiredOf(engine: Engine, collection: Collection, index: Index, afterSeconds: number): void {
  const path = index.paths[0];
  if (path === undefined || index.paths.length > 1) return; // MongoDB makes no TTL of a compound index
  const isOver = { [path]: { $lt: new Date(Date.now() - afterSeconds * 1000) } };
  const filter = index.partialFilter === undefined ? isOver : { $and: [index.partialFilter, isOver] };
  const scan = planIndex(index, filter);
  if (scan === undefined) return;
  const plan = { scan, isExact: false, isSorted: true };
  const expired = [...runPlan(collection, plan, filter).take(maxPerRound)];
  for (const row of expired) removeDocument(engine.storage, collection, row);
}
