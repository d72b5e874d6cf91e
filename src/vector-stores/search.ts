import { z } from "zod";
import { defined } from "../defined.ts";
import { AppError } from "../errors.ts";
import { hasExpired } from "../rag/known-collections.ts";
import { type AttributeFilter, attributeFilterSchema } from "../rag/metadata-filter.ts";
import type { QueryResult } from "../rag/schemas.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { VectorStoreDeps } from "./deps.ts";
import { noteUse } from "./note-use.ts";

const MAX_QUERIES = 5;
const query = z.string().trim().min(1).max(8_192);

export const rankingOptionsSchema = z.object({
  ranker: z.string().max(100).optional(),
  score_threshold: z.number().min(0).max(1).optional(),
});

export const searchSchema = z.object({
  query: z.union([query, z.array(query).min(1).max(MAX_QUERIES)]),
  filters: attributeFilterSchema.nullish(),
  max_num_results: z.int().min(1).max(50).default(10),
  ranking_options: rankingOptionsSchema.optional(),
  rewrite_query: z.boolean().optional(),
});

/** A search of some stores; callers bound how many names and queries it has. */
export type StoreSearch = {
  names: readonly string[];
  queries: readonly string[];
  filters?: AttributeFilter | undefined;
  limit: number;
  scoreThreshold?: number | undefined;
};

/** A passage that a search found. A document that no file of `/v1/files` is has its own id in the place of one. */
export type FoundPassage = {
  fileId: string;
  filename: string;
  chunkId: string;
  score: number;
  text: string;
  attributes: Record<string, string | number | boolean>;
};

/** Searches stores by some queries, best first. @throws AppError `not_found`; `wrong_state` for one that has expired. */
export function makeSearch({ store, rag }: Pick<VectorStoreDeps, "store" | "rag">) {
  const open = async (caller: Caller, name: string) => {
    const collection = await rag.collections.find(caller, name);
    if (hasExpired(collection)) throw new AppError("wrong_state", `The vector store ${name} has expired.`);
    await noteUse({ store }, collection);
  };
  return async (
    caller: Caller & { limit?: never },
    search: StoreSearch,
    signal: AbortSignal,
  ): Promise<FoundPassage[]> => {
    await Promise.all(search.names.map((name) => open(caller, name)));
    const { filters: attributes, limit: topK } = search;
    const asked = { topK, mode: "hybrid" as const, collection: [...search.names], ...defined({ attributes }) };
    const outcomes = await Promise.all(search.queries.map((query) => rag.query(caller, { ...asked, query }, signal)));
    const best = new Map<string, QueryResult>();
    for (const found of outcomes.flatMap(({ results }) => results)) {
      if ((best.get(found.chunkId)?.score ?? -1) < found.score) best.set(found.chunkId, found);
    }
    const { scoreThreshold = 0 } = search;
    const results = [...best.values()].filter(({ score }) => score >= scoreThreshold);
    return describe(store, caller.tenantId, results.sort((a, b) => b.score - a.score).slice(0, search.limit));
  };
}

async function describe(
  store: VectorStoreDeps["store"],
  tenantId: string,
  results: readonly QueryResult[],
): Promise<FoundPassage[]> {
  const documents = await store.documents.describe(tenantId, [...new Set(results.map(({ documentId }) => documentId))]);
  return results.flatMap(({ documentId, chunkId, score, content: text }) => {
    const document = documents.get(documentId);
    if (!document) return []; // it has just been deleted
    const { fileId = documentId, source, title, metadata: attributes } = document;
    return [{ fileId, filename: source.name ?? title, chunkId, score, text, attributes }];
  });
}
