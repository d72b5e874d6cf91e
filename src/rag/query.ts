import { LRUCache } from "lru-cache";
import { AppError } from "../errors.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { ChunkHit } from "../store/chunk-search.ts";
import type { DocumentFace } from "../store/document-store.ts";
import type { RagDeps } from "./deps.ts";
import { withFeedback } from "./feedback.ts";
import { fuseRanks } from "./fuse-ranks.ts";
import { lexicalQuery } from "./lexical-query.ts";
import { tagsOf } from "./metadata-tags.ts";
import type { QueryInput, QueryResult } from "./schemas.ts";

const MAX_FILTERED_DOCUMENTS = 5_000; // a filter that leaves more than that is to be narrowed
const MAX_RERUNS = 2;
const EXTRA_HITS = 10; // beyond topK, for hits that fall out since their version is not the document's
const MAX_HITS = 1_000;
const FUSED_DEPTH = 3; // hybrid ranks so many times topK of each list, or at least
const MIN_FUSED = 100; // so many
const CACHED_EMBEDDINGS = 1_000;

export type QueryDeps = Pick<RagDeps, "store" | "gateway">;
export type RunQuery = (caller: GatewayCaller, input: QueryInput) => Promise<QueryResult[]>;

/** Makes the function that answers queries; it keeps the embeddings of recent ones. */
export function makeQuery(deps: QueryDeps): RunQuery {
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
    return searchCurrent(deps, caller.tenantId, { input, search });
  };
}

/** Searches, and keeps the hits of the versions that documents have now. Runs again when a version changed in between. */
async function searchCurrent(
  deps: QueryDeps,
  tenantId: string,
  { input, search }: { input: QueryInput; search: Search },
): Promise<QueryResult[]> {
  let limit = depthOf(input);
  for (let run = 0; ; run += 1) {
    const hits = await find(deps, tenantId, input.mode, { ...search, limit });
    const faces = await facesOf(deps, tenantId, hits);
    const current = hits.filter((hit) => faces.get(hit.documentId)?.version === hit.version);
    const isStale = hits.some((hit) => hit.version < (faces.get(hit.documentId)?.version ?? 0));
    const isShort = current.length < Math.min(input.topK, hits.length) && hits.length >= limit && limit < MAX_HITS;
    if (run === MAX_RERUNS || !(isStale || isShort)) {
      return current.slice(0, input.topK).map((hit) => toResult(hit, faces.get(hit.documentId)));
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
): Promise<ChunkHit[]> {
  const { chunks } = deps.store;
  if (mode === "vector") return chunks.searchVectors(tenantId, search);
  if (mode === "lexical") return chunks.searchText(tenantId, search);
  const byText = await chunks.searchText(tenantId, search);
  const vector = withFeedback(
    search.vector,
    byText.flatMap(({ embedding }) => (embedding ? [embedding] : [])),
  );
  const byVector = await chunks.searchVectors(tenantId, { ...search, vector, scoreBy: search.vector });
  return fuseRanks<ChunkHit>([byText, byVector], (hit) => hit._id);
}

function depthOf({ mode, topK }: QueryInput): number {
  return mode === "hybrid" ? Math.max(MIN_FUSED, FUSED_DEPTH * topK) : topK + EXTRA_HITS;
}

async function facesOf(
  deps: QueryDeps,
  tenantId: string,
  hits: readonly ChunkHit[],
): Promise<Map<string, DocumentFace>> {
  const ids = [...new Set(hits.map(({ documentId }) => documentId))];
  const faces = ids.length === 0 ? [] : await deps.store.documents.faces(tenantId, ids);
  return new Map(faces.map((face) => [face._id, face]));
}

/**
 * The documents that a query is limited to; undefined where it is not.
 * @throws AppError `invalid_request` when the filter leaves too many.
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
    throw new AppError("invalid_request", `The filter leaves more than ${MAX_FILTERED_DOCUMENTS} documents.`, {
      param: "filter",
    });
  }
  const wanted = documentIds && new Set(documentIds);
  return wanted ? found.filter((id) => wanted.has(id)) : found;
}

function toResult(hit: ChunkHit, face: DocumentFace | undefined): QueryResult {
  return {
    content: hit.content,
    documentId: hit.documentId,
    score: hit.score,
    title: face?.title ?? "",
    chunkId: hit._id,
    ...(hit.page === undefined ? {} : { page: hit.page }),
    ...(hit.heading === undefined ? {} : { heading: hit.heading }),
  };
}
