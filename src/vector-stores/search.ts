import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import { hasExpired } from "../rag/known-collections.ts";
import type { AttributeFilter } from "../rag/metadata-filter.ts";
import type { QueryInput, QueryResult } from "../rag/query-schemas.ts";
import type { DescribedDocument } from "../store/document-groups.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { VectorStoreDeps } from "./deps.ts";
import { touch } from "./touch.ts";

/** Who searches; calls of models for a search are counted to them. */
export type Searcher = Pick<Caller, "tenantId" | "keyId" | "collections">;

/** A search of some stores; callers bound how many names and queries it has. */
export type StoreSearch = {
  names: readonly string[];
  queries: readonly string[];
  filters?: AttributeFilter | undefined;
  limit: number;
  scoreThreshold?: number | undefined;
  /** Whether a model writes further searches, and which one. */
  rewrite?: QueryInput["rewrite"];
};

/** A document by the names of OpenAI's API. One that was not uploaded through `/v1/files` has its document id as `file_id`. */
export type NamedFile = { fileId: string; filename: string };

/** A passage that a search found. */
export type FoundPassage = NamedFile & {
  documentId: string;
  chunkId: string;
  score: number;
  text: string;
  page?: number;
  heading?: string;
  attributes: Record<string, string | number | boolean>;
};

/** What a search has found, and the queries that were searched for, with those that a model wrote. */
export type FoundPassages = { passages: FoundPassage[]; searched: string[] };

/** Searches of stores. */
export function makeSearch({ store, rag, guards }: Pick<VectorStoreDeps, "store" | "rag" | "guards">) {
  const open = async (caller: Searcher, name: string) => {
    const collection = await rag.collections.find(caller, name);
    if (hasExpired(collection)) throw new AppError("wrong_state", `The vector store ${name} has expired.`);
    return collection;
  };
  return {
    /** How OpenAI's API names documents, by their ids; those that are gone are left out. */
    async filesOf(tenantId: string, documentIds: readonly string[]): Promise<Map<string, NamedFile>> {
      const documents = await store.documents.describe(tenantId, [...new Set(documentIds)]);
      return new Map([...documents].map(([documentId, document]) => [documentId, toFile(document)]));
    },
    /** @throws AppError `not_found` for a store that the caller has not; `wrong_state` for one that has expired. */
    requireOpen: async (caller: Searcher, names: readonly string[]): Promise<void> =>
      void (await Promise.all(names.map((name) => open(caller, name)))),
    /** Searches stores by some queries, best first. Throws as `requireOpen`; `compliance_blocked`. */
    async search(caller: Searcher, search: StoreSearch, signal: AbortSignal): Promise<FoundPassages> {
      await Promise.all(search.names.map(async (name) => touch({ store }, await open(caller, name))));
      const { filters: attributes, limit: topK, rewrite } = search;
      const asked = {
        topK,
        mode: "hybrid" as const,
        collection: [...search.names],
        ...defined({ attributes, rewrite }),
      };
      const { queries } = await guards.take(caller, "input", { queries: search.queries });
      const guarded = { ...caller, isGuarded: true };
      const outcomes = await Promise.all(queries.map((query) => rag.query(guarded, { ...asked, query }, signal)));
      const best = new Map<string, QueryResult>();
      for (const found of outcomes.flatMap(({ results }) => results)) {
        if ((best.get(found.chunkId)?.score ?? -1) < found.score) best.set(found.chunkId, found);
      }
      const { scoreThreshold = 0 } = search;
      const results = [...best.values()].filter(({ score }) => score >= scoreThreshold);
      const first = results.sort((a, b) => b.score - a.score).slice(0, search.limit);
      const written = outcomes.flatMap((outcome) => outcome.rewrite?.queries ?? []);
      return {
        passages: await describe(store, caller.tenantId, first),
        searched: [...new Set([...queries, ...written])],
      };
    },
  };
}

async function describe(
  store: VectorStoreDeps["store"],
  tenantId: string,
  results: readonly QueryResult[],
): Promise<FoundPassage[]> {
  const documents = await store.documents.describe(tenantId, [...new Set(results.map(({ documentId }) => documentId))]);
  return results.flatMap(({ documentId, chunkId, score, content: text, page, heading }) => {
    const document = documents.get(documentId);
    if (!document) return []; // it has just been deleted
    const place = defined({ page, heading });
    return [{ ...toFile(document), documentId, chunkId, score, text, ...place, attributes: document.metadata }];
  });
}

const toFile = ({ _id, fileId = _id, source, title }: DescribedDocument): NamedFile => {
  return { fileId, filename: source.name ?? title };
};
