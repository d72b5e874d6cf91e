import type { ChunkHit } from "../store/chunk.ts";
import { isGone } from "../store/document-record.ts";
import type { DocumentHeader } from "../store/document-store.ts";
import { depthOf, findCandidates, MIN_FUSED, type Search } from "./candidates.ts";
import type { RagDeps } from "./deps.ts";
import type { QueryVectors } from "./embed-query.ts";
import { type Hit, rankHits } from "./rank-hits.ts";
import type { QueryInput } from "./schemas.ts";

const MAX_RERUNS = 5; // each takes some ms; while documents move one after the other, several may be needed
const MAX_HITS = 1_000;
const WIDE_HITS = MIN_FUSED; // a search for more keeps the store busy: one of a tenant at a time

/** Hits of the documents' current versions, and what is shown of these documents. */
export type CurrentHits = { hits: Hit[]; headers: ReadonlyMap<string, DocumentHeader>; warnings: string[] };

/** How a query is searched. */
export type CurrentSearch = Omit<Search, "vectors"> &
  Pick<QueryInput, "mode" | "topK"> & {
    /** The spaces of vectors that documents are expected to be in. */
    spaces: readonly string[];
    /** The spaces that they are in now. */
    spacesInUse(): Promise<readonly string[]>;
    /** The vectors of the query for documents in these spaces. */
    vectorsFor(spaces: readonly string[]): Promise<QueryVectors>;
    /** Waits for the turn of a deep search, and answers how it ends. */
    enterWide(): Promise<() => void>;
  };

/**
 * Searches, and keeps the hits of the documents' current versions, at most `topK`. Searches again when a version changed
 * meanwhile, or when there are documents in a space that was not searched.
 */
export async function findCurrent(
  { store }: Pick<RagDeps, "store">,
  tenantId: string,
  { mode, topK, spaces, spacesInUse, vectorsFor, enterWide, ...given }: CurrentSearch,
): Promise<CurrentHits> {
  let limit = depthOf({ mode, topK });
  let searched = spaces;
  for (let run = 0; ; run += 1) {
    const { vectors, warnings } = await vectorsFor(searched);
    const leave = limit > WIDE_HITS ? await enterWide() : undefined;
    const search = { ...given, vectors, mode, limit };
    const hits = rankHits(await findCandidates({ store }, tenantId, search).finally(leave));
    const [headers, inUse] = await Promise.all([headersOf({ store }, tenantId, hits), spacesInUse()]);
    const current = uniqueTexts(hits.filter((hit) => isCurrent(hit, headers.get(hit.documentId))));
    const isStale = hits.some((hit) => hit.version < (headers.get(hit.documentId)?.version ?? 0));
    const isMoved = inUse.some((space) => !searched.includes(space));
    const isShort = current.length < Math.min(topK, hits.length) && hits.length >= limit && limit < MAX_HITS;
    if (run === MAX_RERUNS || !(isStale || isMoved || isShort))
      return { hits: current.slice(0, topK), headers, warnings };
    if (isShort) limit = Math.min(MAX_HITS, limit * 4);
    searched = inUse;
  }
}

/** Whether queries see a hit: it is of its document's current version, and that has not expired. */
const isCurrent = ({ version }: Hit, header: DocumentHeader | undefined) =>
  header?.version === version && !isGone(header);

/** The hits without those of a text that another one has: the same content may have been ingested twice. */
function uniqueTexts(hits: readonly Hit[]): Hit[] {
  const seen = new Set<string>();
  return hits.filter(({ content }) => !seen.has(content) && seen.add(content));
}

async function headersOf(
  { store }: Pick<RagDeps, "store">,
  tenantId: string,
  hits: readonly ChunkHit[],
): Promise<Map<string, DocumentHeader>> {
  const ids = [...new Set(hits.map(({ documentId }) => documentId))];
  const headers = ids.length === 0 ? [] : await store.documents.headers(tenantId, ids);
  return new Map(headers.map((header) => [header._id, header]));
}
