import { LRUCache } from "lru-cache";
import { makeShares } from "../isolation/shares.ts";
import type { Caller } from "../tenancy/roles.ts";
import { chooseDocuments, conditionsOf } from "./choose-documents.ts";
import { chooseCollections } from "./collections.ts";
import { type CurrentHits, type CurrentSearch, findCurrent } from "./current-hits.ts";
import type { RagDeps } from "./deps.ts";
import { fulfils, toStoreFilter } from "./metadata-filter.ts";
import type { QueryInput } from "./query-schemas.ts";

/** Factor by which more hits are searched among all documents than among the matching ones alone. */
const DEPTH_FACTOR = 2;
/** Above this number of results, searching all documents would be a deep search. */
const MOST_AMONG_ALL = 40;

const noHits: CurrentHits = { hits: [], headers: new Map(), warnings: [], isShort: false };

type FindHits = (
  caller: Pick<Caller, "tenantId" | "collections"> & { signal: AbortSignal },
  input: QueryInput,
  search: CurrentSearch,
) => Promise<CurrentHits>;

/**
 * Makes what finds the hits of a query among the documents that it is limited to. Those that match its filter are looked up
 * first, and then searched. When most match, that takes longer than the search: then all are searched by their vectors, and
 * the nearest hits are kept whose documents match, which are the same.
 * @throws AppError as `chooseDocuments` does.
 */
export function makeFindHits(deps: Pick<RagDeps, "store">): FindHits {
  const scans = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const filters = makeWideFilters();
  return async (caller, input, search) => {
    const { tenantId, signal } = caller;
    const conditions = input.documentIds === undefined ? conditionsOf(input) : undefined;
    const filter = conditions && { conditions, collection: input.collection };
    const isShallow = search.mode === "vector" && search.topK <= MOST_AMONG_ALL;
    if (filter && isShallow && filters.isWide(tenantId, filter)) {
      const among = {
        isWanted: ({ metadata = {} }) => fulfils(metadata, filter.conditions),
        filter: toStoreFilter(filter.conditions),
        depthFactor: DEPTH_FACTOR,
      };
      const collections = chooseCollections(caller, input.collection);
      const found = await findCurrent(deps, tenantId, { ...search, collections, among });
      if (!found.isShort) return found;
      filters.noteShort(tenantId, filter);
    }
    const enterScan = () => scans.enter(tenantId, signal);
    const choosing = chooseDocuments(deps, caller, input, enterScan);
    const [chosen] = await Promise.all([choosing, search.vectorsFor(search.spaces)]);
    const { documentIds } = chosen;
    if (filter && documentIds) filters.note(tenantId, filter, documentIds.length);
    return documentIds?.length === 0 ? noHits : findCurrent(deps, tenantId, { ...search, ...chosen });
  };
}

/** Filters whose outcome is remembered, how long in ms, and the longest of them, in characters. */
const REMEMBERED = 1_000;
const REMEMBERED_MS = 60_000;
const MAX_CHARACTERS = 1_000;
/** From this number of matching documents on, filtering the hits is cheaper than passing the documents to the search. */
const WIDE_FROM = 100;

/** Remembers which filters match many documents. An outdated entry costs only time. */
function makeWideFilters() {
  const known = new LRUCache<string, boolean>({ max: REMEMBERED, ttl: REMEMBERED_MS });
  const keyOf = (tenantId: string, filter: object) => `${tenantId}\n${JSON.stringify(filter)}`;
  return {
    isWide: (tenantId: string, filter: object): boolean => known.get(keyOf(tenantId, filter)) ?? false,
    /** Records how many documents matched, unless a search has shown that there are more. */
    note(tenantId: string, filter: object, matched: number): void {
      const key = keyOf(tenantId, filter);
      if (key.length <= MAX_CHARACTERS && !known.has(key)) known.set(key, matched >= WIDE_FROM);
    },
    /** Notes that too few of the nearest hits matched. */
    noteShort: (tenantId: string, filter: object): void => void known.set(keyOf(tenantId, filter), false),
  };
}
