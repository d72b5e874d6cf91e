import { setTimeout as wait } from "node:timers/promises";
import type { Collection, Document } from "mongodb";
import type { SearchIndexDeclaration } from "./collection.ts";

const READY_TIMEOUT_MS = 60_000; // an index on an empty collection is ready within seconds
const READY_POLL_MS = 500;

/** A search index as the server describes it; `queryable` is false while it is built. */
type ListedIndex = { name: string; queryable?: boolean };

/**
 * Creates those of the declared search indexes that are missing, and waits until all of them can be queried. Safe to run
 * in many processes at once. @throws the driver's error where the server has no search indexes.
 */
export async function createSearchIndexes<T extends Document>(
  collection: Collection<T>,
  declared: readonly SearchIndexDeclaration[],
): Promise<void> {
  const present = new Set((await list(collection)).map(({ name }) => name));
  const missing = declared.filter(({ name }) => !present.has(name));
  if (missing.length > 0) {
    await collection.createSearchIndexes([...missing]).catch((error: unknown) => {
      if (!isAlreadyThere(error)) throw error; // another process made them at the same time
    });
  }
  const deadline = Date.now() + READY_TIMEOUT_MS;
  for (;;) {
    if (await areQueryable(collection, declared)) return;
    if (Date.now() > deadline) throw new Error("the search indexes did not become ready in time");
    await wait(READY_POLL_MS);
  }
}

/** Whether all declared search indexes are there and can be queried now. */
export async function areQueryable<T extends Document>(
  collection: Collection<T>,
  declared: readonly SearchIndexDeclaration[],
): Promise<boolean> {
  const ready = (await list(collection)).filter(({ queryable }) => queryable === true).map(({ name }) => name);
  return declared.every(({ name }) => ready.includes(name));
}

async function list<T extends Document>(collection: Collection<T>): Promise<ListedIndex[]> {
  const found = await collection.listSearchIndexes().toArray();
  return found as ListedIndex[]; // the driver's type leaves out `queryable`, which servers do send
}

function isAlreadyThere(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && error.code === 68) || /already exists|duplicate/i.test(error.message);
}
