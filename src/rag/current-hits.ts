import { defined } from "../lib/defined.ts";
import type { DocumentHeader, ReadHeaders } from "../store/document-header.ts";
import { isGone } from "../store/document-record.ts";
import { readSpaceKey } from "../store/vector-space.ts";
import { depthOf, findCandidates, MIN_FUSED, type Search } from "./candidates.ts";
import type { RagDeps } from "./deps.ts";
import { MOST_READ_SPACES, type QueryVectors } from "./embed-query.ts";
import type { QueryInput } from "./query-schemas.ts";
import { type Hit, mixSearches, type RankedBy, rankHits } from "./rank-hits.ts";
import type { Holders } from "./word-nearness.ts";

const MAX_RERUNS = 5; // each search takes some ms; several may be needed while documents move one after the other
const MAX_HITS = 1_000;
const WIDE_HITS = MIN_FUSED; // a larger search keeps the store busy, so a tenant runs one at a time

/**
 * Hits of the documents' current versions, and what is shown of these documents. `isShort`: there are fewer than were
 * wanted, and there may be others among what was not searched.
 */
export type CurrentHits = {
  hits: Hit[];
  headers: ReadonlyMap<string, DocumentHeader>;
  warnings: string[];
  isShort: boolean;
  /** How rare the query's words are, if the search was lexical. */
  holders?: Holders;
};

/** How a query is searched. */
export type CurrentSearch = Omit<Search, "vectors"> &
  Pick<RankedBy, "isSemantic"> &
  Pick<QueryInput, "mode" | "topK"> & {
    /** Whether a judge reads the first hits. If so, they include the best hits of each search, and all hits are kept. */
    isJudged: boolean;
    /** The spaces of vectors that documents are expected to be in. */
    spaces: readonly string[];
    /** The spaces that they are in now, unless they have been read already. */
    spacesInUse(read: readonly string[] | undefined): Promise<readonly string[]>;
    /** The vectors of the query for documents in these spaces. */
    vectorsFor(spaces: readonly string[]): Promise<QueryVectors>;
    /** Runs a deep search in its turn. */
    inWideTurn<T>(search: () => Promise<T>): Promise<T>;
    /**
     * Keeps only some of the documents that are searched. The search is this many times deeper, and is repeated once even
     * deeper.
     */
    among?: {
      isWanted(header: DocumentHeader): boolean;
      /** Matches every document that is wanted. */
      filter: NonNullable<ReadHeaders["wanted"]>["filter"];
      depthFactor: number;
    };
  };

/**
 * Searches, and keeps the hits of the documents' current versions: all if they are judged, else at most `topK`. Searches again
 * when a version changed meanwhile, or when there are documents in a space that was not searched. While documents move to
 * another model one after the other, that may be so each time: the last search keeps the hits of before a move, too.
 */
export async function findCurrent(
  { store }: Pick<RagDeps, "store">,
  tenantId: string,
  { mode, topK, isJudged, isSemantic, spaces, spacesInUse, vectorsFor, inWideTurn, among, ...given }: CurrentSearch,
): Promise<CurrentHits> {
  const isShown = (header: DocumentHeader | undefined): header is DocumentHeader =>
    header !== undefined && !isGone(header) && (among === undefined || among.isWanted(header));
  let limit = depthOf({ mode, topK }) * (among?.depthFactor ?? 1);
  let searched = spaces;
  for (let run = 0; ; run += 1) {
    const isLast = run === MAX_RERUNS;
    const { vectors, warnings } = await vectorsFor(searched);
    const more = [...(among ? (["metadata"] as const) : []), ...(isLast ? (["vectorSpace"] as const) : [])];
    const isWide = limit > WIDE_HITS;
    // Most hits of a wide search are not examined, and their documents are not read.
    const isJoined = mode === "vector" && !isJudged && !isWide;
    const wanted = among && { filter: among.filter, limit: limit / among.depthFactor };
    const joined = isJoined ? { headers: { more, wanted }, spaces: MOST_READ_SPACES } : undefined;
    const search = () => findCandidates({ store }, tenantId, { ...given, joined, vectors, mode, limit });
    const candidates = await (isWide ? inWideTurn(search) : search());
    const ranked = rankHits(candidates, { text: given.text, isSemantic });
    const hits = isJudged ? mixSearches(ranked, candidates) : ranked;
    const holds = (hit: Hit, header: DocumentHeader | undefined) =>
      isShown(header) && (hit.version === header.version || (isLast && isMovedOn(hit, header)));
    const most = isJudged ? hits.length : topK;
    const [{ current, headers }, inUse] = await Promise.all([
      checkHits(hits, {
        most,
        first: among ? hits.length : most,
        known: candidates.headers ?? [],
        holds,
        read: (ids) => store.documents.headers(tenantId, ids, more),
      }),
      spacesInUse(candidates.spaces),
    ]);
    const isStale = hits.some((hit) => hit.version < (headers.get(hit.documentId)?.version ?? 0));
    const isMoved = inUse.some((space) => !searched.includes(space));
    const isCut = among ? current.length < topK : current.length < Math.min(topK, hits.length) && hits.length >= limit;
    const isShort = isCut && limit < MAX_HITS;
    const isDeeper = isShort && (among === undefined || run === 0);
    if (isLast || !(isStale || isMoved || isDeeper))
      return {
        hits: isJudged ? current : current.slice(0, topK),
        headers,
        warnings: [...warnings, ...(candidates.warnings ?? [])],
        isShort,
        ...defined({ holders: candidates.holders }),
      };
    if (isDeeper) limit = Math.min(MAX_HITS, limit * 4);
    searched = inUse;
  }
}

/** Whether a document has moved to another model since the hit was found. Its text is the same there. */
function isMovedOn({ version, model }: Hit, header: DocumentHeader): boolean {
  return version < header.version && model !== readSpaceKey(header.vectorSpace ?? "").model;
}

/** Removes hits whose text another hit has, since the same content may have been ingested twice. */
function uniqueTexts(hits: readonly Hit[]): Hit[] {
  const seen = new Set<string>();
  return hits.filter(({ content }) => !seen.has(content) && seen.add(content));
}

type Check = {
  /** How many valid hits are wanted, and how many hits are examined first. */
  most: number;
  first: number;
  /** Headers that the search has read. */
  known: readonly DocumentHeader[];
  holds(hit: Hit, header: DocumentHeader | undefined): boolean;
  read(documentIds: readonly string[]): Promise<DocumentHeader[]>;
};

/**
 * The hits that still hold, best first, and the headers of the documents that were looked at: no more than it takes to find as
 * many as are wanted. What lies behind these cannot change them.
 */
async function checkHits(hits: readonly Hit[], { most, first, known, holds, read }: Check) {
  const headers = new Map(known.map((header) => [header._id, header]));
  let current: Hit[] = [];
  for (let from = 0, to = first; from < hits.length && current.length < most; from = to, to *= 4) {
    const ids = new Set(hits.slice(from, to).map(({ documentId }) => documentId));
    const unread = [...ids].filter((id) => !headers.has(id));
    for (const header of unread.length > 0 ? await read(unread) : []) headers.set(header._id, header);
    current = uniqueTexts(hits.slice(0, to).filter((hit) => holds(hit, headers.get(hit.documentId))));
  }
  return { headers, current };
}
