import type { Collection, Db } from "mongodb";
import { unavailable } from "../lib/errors.ts";
import type { Logger } from "../observe/logger.ts";
import type { ChunkRecord } from "./chunk.ts";
import { chunkCollection } from "./chunk-store.ts";
import type { StoreCapabilities } from "./collection.ts";
import { areQueryable, createSearchIndexes } from "./search-indexes.ts";

/** What a server answers that has no search indexes: unknown command or stage, not supported, search not enabled. */
const unsupportedCodes = new Set<unknown>([59, 115, 238, 40324, 31082, 6047401, 13388]);

/** Creates search indexes, or the indexes for scans where the server has none of those; answers what it can do. */
export async function ensureSearchIndexes(db: Db, { logger }: { logger: Logger }): Promise<StoreCapabilities> {
  const chunks = db.collection<ChunkRecord>(chunkCollection.name);
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

/** @throws AppError `unavailable` when a search index of the chunks is missing, or being built. */
export async function checkSearchIndexes(db: Db): Promise<void> {
  const chunks = db.collection<ChunkRecord>(chunkCollection.name);
  if (!(await areQueryable(chunks, chunkCollection.searchIndexes ?? []))) throw unavailable("A search index");
}

async function hasSearchIndexes(chunks: Collection<ChunkRecord>): Promise<boolean> {
  try {
    await createSearchIndexes(chunks, chunkCollection.searchIndexes ?? []);
    return true;
  } catch (error) {
    if (isUnsupported(error)) return false;
    throw error;
  }
}

function isUnsupported(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    ("code" in error && unsupportedCodes.has(error.code)) ||
    /search.*not (enabled|supported)|\$listSearchIndexes/i.test(error.message)
  );
}

/** The embedded server searches what is written at the moment it is written, and says in `buildInfo` that it is embedded. */
async function isEmbedded(db: Db): Promise<boolean> {
  const { modules } = await db.command({ buildInfo: 1 });
  return Array.isArray(modules) && modules.includes("switchyard-embedded");
}
