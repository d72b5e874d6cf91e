import { Binary, type Db, type Filter } from "mongodb";
import { forEachConcurrent } from "../lib/for-each-concurrent.ts";
import type { ChunkRecord } from "./chunk.ts";
import { makeChunkSearch } from "./chunk-search.ts";
import { defineCollection, ofTenant, type StoreCapabilities } from "./collection.ts";
import { projectionOf, type Shown } from "./page.ts";
import { makeIndexFor, makeIsQueryable, vectorIndex } from "./search-indexes.ts";

export const chunkCollection = defineCollection<ChunkRecord>({
  name: "chunks",
  indexes: [
    { name: "document", key: { tenantId: 1, documentId: 1, version: 1, n: 1 } },
    { name: "hash", key: { tenantId: 1, documentId: 1, hash: 1 } },
    { name: "collection", key: { tenantId: 1, collection: 1, live: 1 } },
  ],
  searchIndexes: [
    vectorIndex(),
    {
      name: "chunks_text",
      type: "search",
      definition: {
        mappings: {
          dynamic: false,
          fields: {
            content: { type: "string", analyzer: "lucene.english" },
            title: { type: "string", analyzer: "lucene.english" },
            codes: { type: "string", analyzer: "lucene.whitespace" },
            tenantId: { type: "token" },
            documentId: { type: "token" },
            collection: { type: "token" },
            live: { type: "boolean" },
          },
        },
      },
    },
  ],
});

/** A chunk as ingestion makes it. Its id is `<documentId>:<version>:<n>`, so versions stand beside each other. */
export type NewChunk = Omit<ChunkRecord, "_id" | "tenantId" | "embedding"> & { embedding: Float32Array };

const listed = ["n", "content", "tokens", "page", "headings", "heading"] as const;
/** A chunk as a list shows it. */
export type ListedChunk = Shown<ChunkRecord, typeof listed>;

export type VersionOf = { documentId: string; version: number };
export type RemovedChunks = { documentId: string; version?: number; before?: number };

/** Runs one of many commands, either at once or in its turn. */
type RunInTurn = <T>(command: () => Promise<T>) => Promise<T>;
const atOnce: RunInTurn = (command) => command();

/**
 * Chunks of one command. The embedded store indexes a few in a ms and does nothing else meanwhile, and no document may
 * hold up the calls of others for long. A small document, whose chunks are live at once, is mostly one command.
 */
const WRITTEN_AT_ONCE = { live: 32, hidden: 16 };
const CHANGED_AT_ONCE = 20;
/** Concurrent commands for one batch: the store works on one while the next is in transit. */
const WRITES_IN_FLIGHT = 2;

function* slicesOf(items: readonly NewChunk[]): Generator<readonly NewChunk[]> {
  const size = WRITTEN_AT_ONCE[items[0]?.live ? "live" : "hidden"];
  for (let n = 0; n < items.length; n += size) yield items.slice(n, n + size);
}

export function makeChunkStore(db: Db, capabilities: StoreCapabilities) {
  const chunks = db.collection<ChunkRecord>(chunkCollection.name);
  const indexFor = makeIndexFor(chunks);
  return {
    async insert(tenantId: string, items: readonly NewChunk[], inTurn = atOnce): Promise<void> {
      const [first] = items;
      if (!first) return;
      if (capabilities.vectorSearch) await indexFor(first.embedding.length);
      await forEachConcurrent(slicesOf(items), WRITES_IN_FLIGHT, async (slice) => {
        const documents = slice.map((item) => toDocument(tenantId, item));
        await inTurn(() => chunks.insertMany(documents, { ordered: false }));
      });
    },
    /** Makes the chunks of a version with numbers below `count` visible to searches. Returns how many there were. */
    async makeLive(
      tenantId: string,
      { documentId, version }: VersionOf,
      count: number,
      inTurn = atOnce,
    ): Promise<number> {
      const liveAt = new Date();
      let shown = 0;
      for (let n = 0; n < count; n += CHANGED_AT_ONCE) {
        const slice = ofTenant(tenantId, { documentId, version, n: { $gte: n, $lt: n + CHANGED_AT_ONCE } });
        const { matchedCount } = await inTurn(() => chunks.updateMany(slice, { $set: { live: true, liveAt } }));
        shown += matchedCount;
      }
      return shown;
    },
    /** Embeddings that any version of the document has for these texts, by hash. */
    async embeddingsByHash(
      tenantId: string,
      { documentId, model, hashes }: { documentId: string; model: string; hashes: readonly string[] },
    ): Promise<Map<string, Float32Array>> {
      const filter = ofTenant(tenantId, { documentId, model, hash: { $in: [...new Set(hashes)] } });
      const found = new Map<string, Float32Array>();
      const cursor = chunks.find(filter).project<Pick<ChunkRecord, "hash" | "embedding">>({ hash: 1, embedding: 1 });
      for await (const { hash, embedding } of cursor) found.set(hash, embedding.toFloat32Array());
      return found;
    },
    /** Removes the chunks of one version, of all versions before one, or of the whole document. */
    async remove(tenantId: string, { documentId, version, before }: RemovedChunks): Promise<void> {
      const versions = before === undefined ? {} : { version: { $lt: before } };
      const filter: Filter<ChunkRecord> = {
        ...ofTenant(tenantId, { documentId }),
        ...(version === undefined ? versions : { version }),
      };
      for (let found = CHANGED_AT_ONCE; found === CHANGED_AT_ONCE; ) {
        const ids = await chunks.find(filter).project<{ _id: string }>({ _id: 1 }).limit(CHANGED_AT_ONCE).toArray();
        if (ids.length > 0) await chunks.deleteMany(ofTenant(tenantId, { _id: { $in: ids.map(({ _id }) => _id) } }));
        found = ids.length;
      }
    },
    /** The chunks of a version from number `from` on, in the order of the document. */
    list: (tenantId: string, { documentId, version }: VersionOf, { from, limit }: { from: number; limit: number }) =>
      chunks
        .find(ofTenant(tenantId, { documentId, version, n: { $gte: from } }))
        .project<ListedChunk>(projectionOf(listed))
        .sort({ n: 1 })
        .limit(limit)
        .toArray(),
    /** Whole chunks of a version from number `from` on, in the order of the document. */
    read: (tenantId: string, { documentId, version }: VersionOf, { from, limit }: { from: number; limit: number }) =>
      chunks
        .find(ofTenant(tenantId, { documentId, version, n: { $gte: from, $lt: from + limit } }))
        .sort({ n: 1 })
        .toArray(),
    /** The chunks of a version that have these numbers. */
    numbered: (tenantId: string, { documentId, version }: VersionOf, numbers: readonly number[]) =>
      chunks
        .find(ofTenant(tenantId, { documentId, version, n: { $in: [...numbers] } }))
        .project<ListedChunk>(projectionOf(listed))
        .toArray(),
    count: (tenantId: string, { documentId, version }: VersionOf) =>
      chunks.countDocuments(ofTenant(tenantId, { documentId, version })),
    ...makeChunkSearch(chunks, capabilities, { indexFor, isQueryable: makeIsQueryable(chunks) }),
  };
}

/** The number of a chunk by its id; 0 for a text that is none. */
export const numberOfChunk = (chunkId: string): number => Number(/:(\d{1,7})$/.exec(chunkId)?.[1] ?? 0);

function toDocument(tenantId: string, item: NewChunk): ChunkRecord {
  const _id = `${item.documentId}:${item.version}:${item.n}`;
  return { _id, tenantId, ...item, embedding: Binary.fromFloat32Array(item.embedding) };
}
