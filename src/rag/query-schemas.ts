import { z } from "zod";
import { withFewFields } from "../lib/bounded-json.ts";
import { idSchema } from "../lib/ids.ts";
import { limiting } from "../lib/limiting.ts";
import { collectionChoiceSchema } from "./collections.ts";
import { type AttributeFilter, attributeFilterSchema, rangeSchema } from "./metadata-filter.ts";
import { MAX_METADATA_FIELDS, metadataKey, metadataValue } from "./schemas.ts";

/** Where in its document a chunk is. */
export const chunkPlaceFields = {
  page: z.int().optional().describe("From 1, of documents with pages"),
  heading: z.string().optional().describe("The headings above, joined by ` > `"),
  headings: z.array(z.string()).optional().describe("The headings above, outermost first"),
};

const coverageSchema = z.number().min(0).max(1);
const minCoverageSchema = coverageSchema.describe("Leaves out results of a lower `coverage`");

export const queryModes = ["hybrid", "vector", "lexical"] as const;

export const MAX_TOP_K = 100;
const filterValue = z.union([metadataValue, z.array(metadataValue).min(1).max(64), rangeSchema]);

/** Whether neighbours of a hit are shown with it. */
export const expandSchema = z
  .int()
  .min(0)
  .max(5)
  .describe(
    "Chunks before and after each hit, of the same document, that are shown with it. With it, also with 0, hits of one passage " +
      "are one result; without it each hit is one",
  );

/** Whether, and by which model, the first hits are reordered. */
export const rerankSchema = z
  .union([z.literal(true), z.strictObject({ model: z.string().min(1).max(200) })])
  .describe(
    "Reorders 30 hits, the best of each search, by a model of type `rerank`, or by one that chats. `true`: by your first model of type " +
      "`rerank`, else by the platform's default chat model",
  );

export const rerankReportSchema = z.object({
  reranked: z.boolean().describe("False: the order is that of the search, and `reason` says why"),
  model: z.string().optional(),
  ms: z.int().min(0),
  usd: z.number().min(0),
  reason: z.string().optional(),
});
export type RerankReport = z.output<typeof rerankReportSchema>;

/** What is taken of a conversation, in messages and in characters of one. */
const MAX_HISTORY = 40;
const MAX_MESSAGE = 16_000;
/** The conversation that a question goes on with. */
export const historySchema = z
  .array(z.strictObject({ role: z.enum(["user", "assistant"]), content: z.string().max(MAX_MESSAGE) }))
  .max(MAX_HISTORY)
  .describe("What was said before, the oldest first; the end of it is read");
export type History = z.output<typeof historySchema>;

/** Whether, and by which model, a query is rewritten. */
export const rewriteSchema = z
  .union([
    z.literal(true),
    z.strictObject({ model: z.string().min(1).max(200).optional(), history: historySchema.optional() }),
  ])
  .describe(
    "Has a chat model write one to three searches in the words and languages of the documents; what they find weighs three times " +
      "as much as what the query itself finds. `true`: by the platform's default chat model. Without an answer within 3 s the query is " +
      "searched as it is",
  );

export const rewriteReportSchema = z.object({
  rewritten: z.boolean().describe("False: the query was searched as it is, and `reason` says why"),
  queries: z.array(z.string()).describe("What was searched beside the query"),
  model: z.string().optional(),
  ms: z.int().min(0),
  usd: z.number().min(0),
  reason: z.string().optional(),
});
export type RewriteReport = z.output<typeof rewriteReportSchema>;

/** Whether a filter has the form of OpenAI's vector stores, which means something else here. */
const isAttributeFilter = (value: unknown) => attributeFilterSchema.safeParse(value).success;

/** The body of `POST /rag/query`. */
export const queryBodySchema = z.object({
  query: z.string().trim().min(1).max(8_192),
  topK: z.number().int().min(1).max(MAX_TOP_K).default(10),
  collection: limiting(collectionChoiceSchema.optional(), { also: ["collectionName"] }),
  documentIds: limiting(z.array(idSchema("document")).min(1).max(1_000).optional()),
  filter: limiting(
    withFewFields(MAX_METADATA_FIELDS, z.record(metadataKey, filterValue))
      .optional()
      .describe(
        "Documents whose metadata have each of these values, one of a list, or one in a range of numbers or dates",
      ),
    { unlike: ["metadata", "where"], isOther: isAttributeFilter },
  ),
  minScore: limiting(z.number().min(0).max(1).optional().describe("Leaves out results of a lower `score`"), {
    also: ["scoreThreshold", "score_min"],
    unlike: ["minSimilarity", "similarityThreshold", "threshold"],
  }),
  minCoverage: limiting(minCoverageSchema.optional(), { also: ["coverageThreshold"] }),
  mode: z.enum(queryModes).default("hybrid"),
  expand: expandSchema.optional(),
  rewrite: rewriteSchema.optional(),
  rerank: rerankSchema.optional(),
});
/** A query; `attributes` is a filter in the form of OpenAI's vector stores. */
export type QueryInput = z.output<typeof queryBodySchema> & { attributes?: AttributeFilter };

export const queryResultSchema = z.object({
  content: z.string(),
  documentId: idSchema("document"),
  score: z
    .number()
    .min(0)
    .max(1)
    .describe(
      "What the results are ordered by: the similarity in `vector` mode, else a relevance from 0 to 1 that follows from the words " +
        "and the rank; a judge's grade with `rerank`. It is no probability",
    ),
  coverage: coverageSchema.describe(
    "The share of the question's words that the passage, its title and headings hold, weighed by how rare they are",
  ),
  similarity: z
    .number()
    .min(0)
    .max(1)
    .describe("(1 + cosine) / 2 of the vectors of query and chunk; 0 if the query has none by the chunk's model"),
  title: z.string(),
  chunkId: z.string().describe("The chunk that was found; the best, if several are shown as one passage"),
  chunkIds: z.array(z.string()).describe("The chunks that `content` is made of, in the document's order"),
  index: z.int().min(0).describe("Place of the chunk that was found in its document, from 0"),
  ...chunkPlaceFields,
});
export type QueryResult = z.output<typeof queryResultSchema>;

/** What a query answers. */
export const queryOutcomeSchema = z.object({
  results: z.array(queryResultSchema),
  coverage: coverageSchema.describe("The share that the best passages hold: low if no document answers"),
  rewrite: rewriteReportSchema.optional().describe("What became of `rewrite`, if it was asked for"),
  rerank: rerankReportSchema.optional().describe("What became of `rerank`, if it was asked for"),
  warnings: z
    .array(z.string())
    .optional()
    .describe("Which documents could not be searched by meaning, and why; they are found by their words"),
});
export type QueryOutcome = z.output<typeof queryOutcomeSchema>;
