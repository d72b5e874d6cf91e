import { z } from "zod";
import type { ChatBody } from "../../gateway/schemas.ts";
import { collectionNameSchema } from "../../rag/collections.ts";
import { type AttributeFilter, attributeFilterSchema } from "../../rag/metadata-filter.ts";
import { DEFAULT_RESULTS, rankingOptionsSchema, resultCount } from "../../vector-stores/schemas.ts";

/** Vector stores that one tool searches. */
const MAX_STORES = 10;
/** By this name the search is offered to the model. */
export const fileSearchName = "file_search";
/** The entry of `include` by which a response has what its searches found. */
export const searchResults = "file_search_call.results";

/** OpenAI's tool that searches vector stores, which are ours: the search is made here, for any model. */
export const fileSearchTool = z.object({
  type: z.literal("file_search"),
  vector_store_ids: z.array(collectionNameSchema).min(1).max(MAX_STORES),
  max_num_results: resultCount.nullish(),
  filters: attributeFilterSchema.nullish(),
  ranking_options: rankingOptionsSchema.nullish(),
  rewrite_query: z
    .boolean()
    .nullish()
    .describe("Whether the model of the response writes further searches for each of its own"),
});

/** What a response may search. */
export type FileSearch = {
  names: readonly string[];
  filters: AttributeFilter | undefined;
  /** How many passages one search finds at most. */
  limit: number;
  scoreThreshold: number | undefined;
  /** Whether each search is rewritten. */
  isRewritten: boolean;
  /** Where the tool stands in the request. */
  place: string;
};

export function toFileSearch(tool: z.output<typeof fileSearchTool>, place: string): FileSearch {
  const { vector_store_ids: names, filters, max_num_results: limit, ranking_options: ranking } = tool;
  return {
    names: [...new Set(names)],
    filters: filters ?? undefined,
    limit: limit ?? DEFAULT_RESULTS,
    scoreThreshold: ranking?.score_threshold,
    isRewritten: tool.rewrite_query === true,
    place,
  };
}

/** The search as it is offered to a model: each provider takes functions, and none of them knows our stores. */
export const fileSearchFunction: NonNullable<ChatBody["tools"]>[number] = {
  type: "function",
  function: {
    name: fileSearchName,
    description:
      "Searches the documents that the user has given, by meaning and by words, and returns passages, each with a mark as 【1】. " +
      "Ask for one thing at a time; search again where the passages do not answer. Put the mark of a passage right after each " +
      "statement that rests on it.",
    parameters: {
      type: "object",
      properties: { query: { type: "string", description: "What to find, in full words" } },
      required: ["query"],
      additionalProperties: false,
    },
  },
};
