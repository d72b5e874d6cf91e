import { setTimeout as wait } from "node:timers/promises";
import type { Collection, Db } from "mongodb";
import type { Logger } from "../logger.ts";
import { type ChunkDocument, chunkCollection } from "./chunk-store.ts";
import type { StoreCapabilities } from "./store.ts";

const READY_TIMEOUT_MS = 60_000; // a new index on an empty collection is ready within seconds
const READY_POLL_MS = 500;

/** What a server answers that has no search indexes: unknown command or stage, not supported, search not enabled. */
const unsupportedCodes = new Set<unknown>([59, 115, 238, 40324, 31082, 6047401, 13388]);

/** A search index as the server describes it; `queryable` is false while it is built. */
type ListedIndex = { name: string; queryable?: boolean };

/**
 * Creates the search indexes of the chunks where the server has such indexes, and finds out what it can do. Without them
 * it declares what the scans that stand in for them need, and says so once.
 */
export async function ensureSearchIndexes(db: Db, { logger }: { logger: Logger }): Promise<StoreCapabilities> {
  const chunks = db.collection<ChunkDocument>(chunkCollection.name);
  if (await hasSearchIndexes(chunks)) {
    const searchLag = (await isEmbedded(db)) ? "none" : "eventual";
    if (searchLag === "eventual") await chunks.createIndex({ tenantId: 1, live: 1, liveAt: -1 }, { name: "recent" });
    return { vectorSearch: true, textSearch: true, searchLag };
  }
  await chunks.createIndex({ tenantId: 1, live: 1, documentId: 1 }, { name: "live" });
  await chunks.createIndex({ tenantId: 1, content: "text", title: "text" }, { name: "text" });
  logger.warn("this MongoDB has no search indexes: queries scan the tenant's vectors, and find words by $text");
  return { vectorSearch: false, textSearch: false, searchLag: "none" };
}

async function hasSearchIndexes(chunks: Collection<ChunkDocument>): Promise<boolean> {
  const declared = chunkCollection.searchIndexes ?? [];
  try {
    const present = new Set((await list(chunks)).map(({ name }) => name));
    const missing = declared.filter(({ name }) => !present.has(name));
    if (missing.length > 0) await chunks.createSearchIndexes([...missing]);
  } catch (error) {
    if (isUnsupported(error)) return false;
    if (!isAlreadyThere(error)) throw error; // another process made them at the same time
  }
  const deadline = Date.now() + READY_TIMEOUT_MS;
  for (;;) {
    const ready = (await list(chunks)).filter(({ queryable }) => queryable === true).map(({ name }) => name);
    if (declared.every(({ name }) => ready.includes(name))) return true;
    if (Date.now() > deadline) throw new Error("the search indexes did not become ready in time");
    await wait(READY_POLL_MS);
  }
}

async function list(chunks: Collection<ChunkDocument>): Promise<ListedIndex[]> {
  const found = await chunks.listSearchIndexes().toArray();
  return found as ListedIndex[]; // the driver's type leaves out `queryable`, which servers do send
}

function isUnsupported(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    ("code" in error && unsupportedCodes.has(error.code)) ||
    /search.*not (enabled|supported)|\$listSearchIndexes/i.test(error.message)
  );
}

function isAlreadyThere(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && error.code === 68) || /already exists|duplicate/i.test(error.message);
}

/** The embedded server searches what is written at the moment it is written, and says in `buildInfo` that it is embedded. */
async function isEmbedded(db: Db): Promise<boolean> {
  const { modules } = await db.command({ buildInfo: 1 });
  return Array.isArray(modules) && modules.includes("switchyard-embedded");
}
