import type { Collection, Index } from "./collection.ts";
import { removeDocument } from "./documents.ts";
import type { Engine } from "./engine.ts";
import { planIndex } from "./planner.ts";
import { runPlan } from "./scan.ts";

/** So many documents of one index at a time: the next round goes on, and others are served in between. */
const maxPerRound = 1_000;

/** Removes documents whose date under a TTL index is past. A document without a date there stays for ever. */
export function removeExpired(engine: Engine): void {
  for (const db of engine.catalog.databases()) {
    for (const collection of engine.catalog.list(db)) {
      for (const index of collection.indexes) {
        if (index.expireAfterSeconds !== undefined)
          removeExpiredOf(engine, collection, index, index.expireAfterSeconds);
      }
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
  const plan = { scans: [scan], isExact: false, isSorted: true };
  const expired = [...runPlan(collection, plan, filter).take(maxPerRound)];
  for (const row of expired) removeDocument(engine.storage, collection, row);
}
