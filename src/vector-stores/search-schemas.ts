import { z } from "zod";
import { attributeFilterSchema } from "../rag/metadata-filter.ts";

const MAX_QUERIES = 5;
const query = z.string().trim().min(1).max(8_192);

export const rankingOptionsSchema = z.object({
  ranker: z.string().max(100).optional(),
  score_threshold: z.number().min(0).max(1).optional(),
});

/** How many passages a search finds at most. */
export const resultCount = z.int().min(1).max(50);
export const DEFAULT_RESULTS = 10;

export const searchSchema = z.object({
  query: z.union([query, z.array(query).min(1).max(MAX_QUERIES)]),
  filters: attributeFilterSchema.nullish(),
  max_num_results: resultCount.default(DEFAULT_RESULTS),
  ranking_options: rankingOptionsSchema.optional(),
  rewrite_query: z.boolean().optional(),
});
