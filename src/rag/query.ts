import { LRUCache } from "lru-cache";
import { functionWords } from "../common-words.ts";
import { defined } from "../defined.ts";
import { invalidRequest } from "../errors.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import { makeShares } from "../isolation/shares.ts";
import type { ChunkHit } from "../store/chunk.ts";
import type { TextHit } from "../store/chunk-search.ts";
import type { DocumentHeader } from "../store/document-store.ts";
import type { RagDeps } from "./deps.ts";
import { withFeedback } from "./feedback.ts";
import { fuseRanks } from "./fuse-ranks.ts";
import { type QueryInput, type QueryResult, tagsOf } from "./schemas.ts";

const MAX_FILTERED_DOCUMENTS = 5_000; // a filter that matches more is rejected
const MAX_TERMS = 64; // words of a query; each costs the index a look-up
const MAX_RERUNS = 2;
const EXTRA_HITS = 10; // beyond topK, since hits of outdated versions are dropped
const MAX_HITS = 1_000;
const FUSED_DEPTH = 3; // hits of each list that hybrid ranks, as a multiple of topK
const MIN_FUSED = 100;
const WIDE_HITS = MIN_FUSED; // a search for more keeps the store busy: one of a tenant at a time
const CACHED_EMBEDDINGS = 1_000;
const HALF_SURE = 6; // the word score (BM25) at which a chunk is relevant by one half: a rare word, or a few common ones

export type QueryDeps = Pick<RagDeps, "store" | "gateway">;
export type RunQuery = (caller: GatewayCaller, input: QueryInput) => Promise<QueryResult[]>;

/** Makes the function that runs queries; it caches the embeddings of recent ones. */
export function makeQuery(deps: QueryDeps): RunQuery {
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const embeddings = new LRUCache<string, Float32Array>({ max: CACHED_EMBEDDINGS });
  const embed = async (caller: GatewayCaller, text: string): Promise<Float32Array> => {
    const key = `${caller.tenantId}\n${text}`;
    const known = embeddings.get(key);
    if (known) return known;
    const [made] = (await deps.gateway.embed(caller, { input: [text] })).embeddings;
    if (!made) throw new TypeError("the gateway gave no embedding for the query");
    embeddings.set(key, made);
    return made;
  };
  return async (caller, input) => {
    const [vector, documentIds] = await Promise.all([
      embed(caller, input.query),
      chosenDocuments(deps, caller.tenantId, input),
    ]);
    if (documentIds?.length === 0) return [];
    const search = { text: lexicalQuery(input.query), vector, ...(documentIds ? { documentIds } : {}) };
    return searchCurrent(deps, caller.tenantId, {
      input,
      search,
      enter: (limit) => (limit > WIDE_HITS ? turns.enter(caller.tenantId, caller.signal) : undefined),
    });
  };
}

/**
 * Searches, and keeps the hits of the documents' current versions. Searches again when a version changed meanwhile. `enter`
 * waits for the turn of a search of that depth, and answers how it ends.
 */
async function searchCurrent(
  deps: QueryDeps,
  tenantId: string,
  {
    input,
    search,
    enter,
  }: { input: QueryInput; search: Search; enter(limit: number): Promise<() => void> | undefined },
): Promise<QueryResult[]> {
  let limit = depthOf(input);
  for (let run = 0; ; run += 1) {
    const leave = await enter(limit);
    const hits = await find(deps, tenantId, input.mode, { ...search, limit }).finally(leave);
    const headers = await headersOf(deps, tenantId, hits);
    const current = uniqueTexts(hits.filter((hit) => headers.get(hit.documentId)?.version === hit.version));
    const isStale = hits.some((hit) => hit.version < (headers.get(hit.documentId)?.version ?? 0));
    const isShort = current.length < Math.min(input.topK, hits.length) && hits.length >= limit && limit < MAX_HITS;
    if (run === MAX_RERUNS || !(isStale || isShort)) {
      return current.slice(0, input.topK).map((hit) => toResult(hit, headers.get(hit.documentId)));
    }
    if (isShort) limit = Math.min(MAX_HITS, limit * 4);
  }
}

type Search = { text: string; vector: Float32Array; documentIds?: readonly string[] };

async function find(
  deps: QueryDeps,
  tenantId: string,
  mode: QueryInput["mode"],
  search: Search & { limit: number },
): Promise<Hit[]> {
  const { chunks } = deps.store;
  if (mode === "vector") {
    return (await chunks.searchVectors(tenantId, search)).map((hit) => ({ ...hit, score: hit.similarity }));
  }
  const byText = await chunks.searchText(tenantId, search);
  if (mode === "lexical") return scoreFalling(byText);
  const vector = withFeedback(
    search.vector,
    byText.flatMap(({ embedding }) => (embedding ? [embedding] : [])),
  );
  const byVector = await chunks.searchVectors(tenantId, { ...search, vector, scoreBy: search.vector });
  const fused = fuseRanks<ChunkHit>([byText, byVector], (hit) => hit._id);
  const best = Math.max(relevanceOf(byText), ...byVector.map(cosineOf));
  return fused.map(({ item, sum }) => ({ ...item, score: (best * sum) / (fused[0]?.sum ?? 1) }));
}

/** A chunk with its place in the results: `score` falls from one to the next. */
type Hit = ChunkHit & { score: number };

const cosineOf = ({ similarity }: ChunkHit) => Math.max(0, 2 * similarity - 1);

/**
 * The relevance of the best hit, from 0 to 1: by its vector, or by its words, whichever is more. The relevance by words grows
 * with the word score and never reaches 1. Scores of other hits are fractions of it, so they compare across queries.
 */
function relevanceOf(hits: readonly TextHit[]): number {
  return Math.max(0, ...hits.map((hit) => Math.max(cosineOf(hit), hit.wordScore / (hit.wordScore + HALF_SURE))));
}

/** Scores hits in their order. If an index is late, two lists are merged, and a hit may follow one of a lower word score. */
function scoreFalling(hits: readonly TextHit[]): Hit[] {
  const best = relevanceOf(hits);
  let share = 1;
  return hits.map((hit) => {
    share = Math.min(share, hit.wordScore / (hits[0]?.wordScore || 1));
    return { ...hit, score: best * share };
  });
}

/** The hits without those of a text that another one has: the same content may have been ingested twice. */
function uniqueTexts(hits: readonly Hit[]): Hit[] {
  const seen = new Set<string>();
  return hits.filter(({ content }) => !seen.has(content) && seen.add(content));
}

function depthOf({ mode, topK }: QueryInput): number {
  return mode === "hybrid" ? Math.max(MIN_FUSED, FUSED_DEPTH * topK) : topK + EXTRA_HITS;
}

async function headersOf(
  deps: QueryDeps,
  tenantId: string,
  hits: readonly ChunkHit[],
): Promise<Map<string, DocumentHeader>> {
  const ids = [...new Set(hits.map(({ documentId }) => documentId))];
  const headers = ids.length === 0 ? [] : await deps.store.documents.headers(tenantId, ids);
  return new Map(headers.map((header) => [header._id, header]));
}

/**
 * Returns the words of a query for a lexical search: without function words (unless there are no others), without
 * repetitions, at most 64. The index stems them. A query without words is returned as it is.
 */
export function lexicalQuery(query: string): string {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? [])];
  const significant = words.filter((word) => !functionWords.has(word));
  const chosen = significant.length > 0 ? significant : words;
  return chosen.slice(0, MAX_TERMS).join(" ") || query;
}

/**
 * Returns the documents that a query is limited to, or undefined if it is not limited.
 * @throws AppError `invalid_request` when too many documents match the filter.
 */
async function chosenDocuments(
  deps: QueryDeps,
  tenantId: string,
  { documentIds, filter }: QueryInput,
): Promise<string[] | undefined> {
  if (!filter || Object.keys(filter).length === 0) return documentIds;
  const groups = Object.entries(filter).map(([key, value]) => [value].flat().flatMap((one) => tagsOf({ [key]: one })));
  const found = await deps.store.documents.idsByTags(tenantId, groups, MAX_FILTERED_DOCUMENTS + 1);
  if (found.length > MAX_FILTERED_DOCUMENTS) {
    throw invalidRequest("filter", `More than ${MAX_FILTERED_DOCUMENTS} documents match the filter.`);
  }
  const wanted = documentIds && new Set(documentIds);
  return wanted ? found.filter((id) => wanted.has(id)) : found;
}

function toResult(hit: Hit, header: DocumentHeader | undefined): QueryResult {
  return {
    content: hit.content,
    documentId: hit.documentId,
    score: hit.score,
    similarity: hit.similarity,
    title: header?.title ?? "",
    chunkId: hit._id,
    ...defined({ page: hit.page, heading: hit.heading }),
  };
}
