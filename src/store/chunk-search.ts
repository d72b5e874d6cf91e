import { Binary, type Collection, type Filter } from "mongodb";
import type { ChunkHit, ChunkRecord } from "./chunk.ts";
import { ofTenant, type StoreCapabilities } from "./collection.ts";
import {
  atlasTextFilter,
  atlasVectorFilter,
  type CollectionNames,
  embeddedTextFilter,
  inCollections,
} from "./collection-filter.ts";
import { type DocumentHeader, headersStages, type JoinedHeader, type ReadHeaders } from "./document-header.ts";
import { spacesStage } from "./document-spaces.ts";
import { type RankedHit, type Scored, scanText, scanVectors, similarity } from "./exact-scan.ts";
import type { IndexFor } from "./search-indexes.ts";
import { isSearchAway, SearchUnavailable } from "./store-errors.ts";

/** A hit of a search for words, with its vector and the index's score of its words (BM25), which has no upper limit. */
export type TextHit = ChunkHit & { wordScore: number; embedding?: Float32Array };
export type VectorSearch = {
  /** Model that made the vectors. Chunks of other models are left out. */
  model: string;
  /** Whether the tenant may have chunks of other models with vectors of this length. */
  isLengthShared?: boolean;
  /** The vector to which near chunks are wanted. */
  vector: Float32Array;
  /** The vector by which they are scored, if it is another one. */
  scoreBy?: Float32Array;
  limit: number;
  /** What else is read in the same moment, where the server's indexes do not lag behind. */
  joined?: { headers: ReadHeaders; spaces: number } | undefined;
} & Within;
/**
 * The chunks nearest to a vector, best first; with the headers of their documents, and the spaces that the tenant's documents
 * are in, where these were to be read and could be.
 */
export type VectorHits = { hits: ChunkHit[]; headers?: DocumentHeader[]; spaces?: string[] };
/** Which of a tenant's chunks are searched. */
type Within = { documentIds?: readonly string[]; collections?: CollectionNames };
type TextSearch = Pick<VectorSearch, "limit" | "documentIds" | "collections"> & {
  text: string;
  /** The query's vectors, by their models: what the similarity of hits is computed by. */
  vectors: ReadonlyMap<string, Float32Array>;
};
type FoundByVector = Omit<ChunkHit, "similarity"> & { rank: number; embedding?: Binary; document?: JoinedHeader };
type FoundSpace = { _id: string };
/** A chunk as searches read it: the embedding only where the score has to be computed here. */
type Found = Omit<ChunkHit, "similarity"> & { wordScore: number; embedding?: Binary };

const MIN_CANDIDATES = 200;
const MAX_CANDIDATES = 10_000;
const RECENT_MS = 5 * 60_000; // maximum lag of an index, in ms; an index of Atlas usually lags by seconds
const MAX_RECENT = 5_000; // recent chunks of one tenant that are scanned because of that lag
/** Maximum chunks of one tenant that are scanned while an index cannot be queried. */
const MAX_SCANNED = 5_000;
const TEXT_INDEX = "chunks_text";
const shown = {
  documentId: 1,
  version: 1,
  n: 1,
  content: 1,
  page: 1,
  headings: 1,
  heading: 1,
  model: 1,
} as const;

/**
 * Searches over a tenant's live chunks, by the server's indexes where it has them, else by an exact scan and `$text`.
 * Where an index lags behind writes, what became live a moment ago is scanned too and united with its results.
 */
export function makeChunkSearch(
  chunks: Collection<ChunkRecord>,
  capabilities: StoreCapabilities,
  { indexFor, isQueryable }: { indexFor: IndexFor; isQueryable(name: string): Promise<boolean> },
) {
  const isLate = capabilities.searchLag === "eventual";
  const { byVectorIndex, byTextIndex, byTextOperator } = makeIndexSearches(chunks, isLate);
  const { recent, readAll } = makeChunkReads(chunks);
  /** The result of an index search; undefined while the index is being built or its server is unavailable. */
  const ask = async <T>(index: string, search: () => Promise<T>): Promise<T | undefined> => {
    if (!isLate) return search();
    try {
      return (await isQueryable(index)) ? await search() : undefined;
    } catch (error) {
      if (isSearchAway(error)) return undefined;
      throw error;
    }
  };
  return {
    /** See `VectorHits`. @throws SearchUnavailable while the index cannot be queried, for a tenant of many chunks. */
    async searchVectors(tenantId: string, search: VectorSearch): Promise<VectorHits> {
      if (!capabilities.vectorSearch) {
        const filter = { ...live(tenantId, search), model: search.model };
        return { hits: await scanVectors(chunks.find(filter).project<Scored>({ ...shown, embedding: 1 }), search) };
      }
      const index = await indexFor(search.vector.length);
      if (!isLate) return byVectorIndex(tenantId, index, search);
      // The documents can be looked up only after both steps.
      const indexed = ask(index, () => byVectorIndex(tenantId, index, { ...search, joined: undefined }));
      const [found, late] = await Promise.all([indexed, recent(tenantId, search)]);
      if (found === undefined) return { hits: await scanVectors(await readAll(tenantId, search), search) };
      const { hits } = found;
      const united = new Map([...hits, ...(await scanVectors(late, search))].map((hit) => [hit._id, hit]));
      return { hits: [...united.values()].sort((a, b) => b.rank - a.rank).slice(0, search.limit) };
    },
    /** The chunks that match the words best, best first. @throws as `searchVectors`. */
    async searchText(tenantId: string, search: TextSearch): Promise<TextHit[]> {
      if (!capabilities.textSearch) return (await byTextOperator(tenantId, search)).map(scoredFor(search.vectors));
      const indexed = ask(TEXT_INDEX, () => byTextIndex(tenantId, search));
      if (!isLate) return ((await indexed) ?? []).map(scoredFor(search.vectors));
      const [hits, late] = await Promise.all([indexed, recent(tenantId, search)]);
      if (hits === undefined) {
        const { documentIds, collections, limit } = search;
        const all = await readAll(tenantId, { ...(documentIds ? { documentIds } : {}), collections });
        return scanText(all, search.text).slice(0, limit).map(scoredFor(search.vectors));
      }
      const known = new Set(hits.map(({ _id }) => _id));
      const missed = scanText(
        late.filter(({ _id }) => !known.has(_id)),
        search.text,
      );
      return interleave(hits, missed).slice(0, search.limit).map(scoredFor(search.vectors));
    },
  };
}

/** Searches by indexes of the server. Those that are late are Atlas' own. */
function makeIndexSearches(chunks: Collection<ChunkRecord>, isLate: boolean) {
  const vectorFilter = (tenantId: string, { collections, ...within }: Within) =>
    isLate
      ? { ...live(tenantId, within), ...atlasVectorFilter(collections) }
      : live(tenantId, { collections, ...within });
  const textFilter = isLate ? atlasTextFilter : embeddedTextFilter;

  const byVectorIndex = async (tenantId: string, index: string, search: VectorSearch) => {
    const { model, isLengthShared, vector, scoreBy, limit, joined, ...within } = search;
    // Atlas refuses the path while it still answers by an index that was made without it.
    const filter = { ...vectorFilter(tenantId, within), ...(isLengthShared ? { model } : {}) };
    const found = await chunks
      .aggregate<FoundByVector | FoundSpace>(
        [
          {
            $vectorSearch: {
              index,
              path: "embedding",
              queryVector: Binary.fromFloat32Array(vector),
              numCandidates: Math.min(MAX_CANDIDATES, Math.max(MIN_CANDIDATES, 20 * limit)),
              limit,
              filter,
            },
          },
          { $project: { ...shown, rank: { $meta: "vectorSearchScore" }, ...(scoreBy ? { embedding: 1 } : {}) } },
          ...(joined ? [...headersStages(joined.headers), spacesStage(tenantId, joined.spaces)] : []),
        ],
        { batchSize: limit + 1 + (joined?.spaces ?? 0) },
      )
      .toArray();
    const headers: DocumentHeader[] = []; // several hits may be of one document
    const hits: RankedHit[] = [];
    const spaces: string[] = [];
    for (const one of found) {
      if (!("documentId" in one)) {
        spaces.push(one._id);
        continue;
      }
      const { embedding, document: header, ...hit } = one;
      if (header && header.status !== "deleting") headers.push(header);
      if (hit.model !== model) continue; // the document may just have moved to another model
      hits.push({
        ...hit,
        similarity: scoreBy && embedding ? similarity(scoreBy, embedding.toFloat32Array()) : hit.rank,
      });
    }
    return { hits, ...(joined ? { headers, spaces } : {}) };
  };

  const byTextIndex = (tenantId: string, { text, limit, documentIds, collections }: TextSearch) => {
    const filter: object[] = [
      { equals: { path: "tenantId", value: tenantId } },
      { equals: { path: "live", value: true } },
      ...(documentIds ? [{ in: { path: "documentId", value: [...documentIds] } }] : []),
      ...textFilter(collections),
    ];
    const compound = { must: [{ text: { query: text, path: ["content", "title", "codes"] } }], filter };
    return chunks
      .aggregate<Found>(
        [
          { $search: { index: TEXT_INDEX, compound } },
          { $limit: limit },
          { $project: { ...shown, embedding: 1, wordScore: { $meta: "searchScore" } } },
        ],
        { batchSize: limit + 1 },
      )
      .toArray();
  };

  const byTextOperator = (tenantId: string, { text, limit, ...within }: TextSearch) =>
    chunks
      .find({ ...live(tenantId, within), $text: { $search: text.replace(/["-]/g, " ") } })
      .project<Found>({ ...shown, embedding: 1, wordScore: { $meta: "textScore" } })
      .sort({ wordScore: { $meta: "textScore" } })
      .limit(limit)
      .toArray();
  return { byVectorIndex, byTextIndex, byTextOperator };
}

/** Reads chunks that are to be searched here. */
function makeChunkReads(chunks: Collection<ChunkRecord>) {
  /** Chunks that became live a moment ago, limited to one model if it is named. */
  const recent = async (tenantId: string, within: Within & { model?: string }) => {
    const since = new Date(Date.now() - RECENT_MS);
    const ofModel = within.model === undefined ? {} : { model: within.model };
    return chunks
      .find({ ...live(tenantId, within), ...ofModel, liveAt: { $gte: since } })
      .sort({ liveAt: -1 })
      .limit(MAX_RECENT)
      .project<Scored & { title: string; codes?: string }>({ ...shown, title: 1, codes: 1, embedding: 1 })
      .toArray();
  };

  /** All live chunks of a tenant, to be searched without an index. @throws SearchUnavailable for too many of them. */
  const readAll = async (tenantId: string, within: Within & { model?: string }) => {
    const ofModel = within.model === undefined ? {} : { model: within.model };
    const found = await chunks
      .find({ ...live(tenantId, within), ...ofModel })
      .limit(MAX_SCANNED + 1)
      .project<Scored & { title: string; codes?: string }>({ ...shown, title: 1, codes: 1, embedding: 1 })
      .toArray();
    if (found.length > MAX_SCANNED) throw new SearchUnavailable();
    return found;
  };
  return { recent, readAll };
}

function live(tenantId: string, { documentIds, collections }: Within): Filter<ChunkRecord> & object {
  return {
    ...ofTenant(tenantId, { live: true }),
    ...(documentIds ? { documentId: { $in: [...documentIds] } } : {}),
    ...inCollections(collections),
  };
}

function scoredFor(vectors: TextSearch["vectors"]): (found: Found) => TextHit {
  return ({ embedding, ...hit }) => {
    const vector = vectors.get(hit.model);
    const floats = embedding?.toFloat32Array();
    if (vector === undefined || floats?.length !== vector.length) return { ...hit, similarity: 0 };
    return { ...hit, similarity: similarity(vector, floats), embedding: floats };
  };
}

/** Two rankings whose scores cannot be compared, one from each in turn. */
function interleave<T>(a: readonly T[], b: readonly T[]): T[] {
  const merged: T[] = [];
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) {
    for (const item of [a[index], b[index]]) if (item !== undefined) merged.push(item);
  }
  return merged;
}
