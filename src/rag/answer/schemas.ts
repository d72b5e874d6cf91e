import { z } from "zod";
import { citationSchema } from "../../gateway/citation.ts";
import { finishReason, usageSchema } from "../../gateway/schemas.ts";
import { limiting } from "../../lib/limiting.ts";
import {
  historySchema,
  queryBodySchema,
  rerankReportSchema,
  rewriteReportSchema,
  rewriteSchema,
} from "../query-schemas.ts";

/** Passages that a model gets. */
const MAX_TOP_K = 20;
const DEFAULT_TOP_K = 8;
const DEFAULT_MIN_COVERAGE = 0.3;
/** The alias of the platform's default chat model. */
const DEFAULT_MODEL = "meta-llm";

const { query, collection, documentIds, filter, rerank } = queryBodySchema.shape;

/** The body of `POST /rag/answer`. */
export const answerBodySchema = z.object({
  query,
  history: historySchema.optional(),
  collection,
  documentIds,
  filter,
  topK: z.int().min(1).max(MAX_TOP_K).default(DEFAULT_TOP_K).describe("Passages that the model gets"),
  model: z.string().min(1).max(200).default(DEFAULT_MODEL).describe("A chat model, or `auto`"),
  rewrite: rewriteSchema
    .optional()
    .describe("As of a query; by default with the conversation, and by the model that answers"),
  rerank,
  minCoverage: limiting(
    z
      .number()
      .min(0)
      .max(1)
      .default(DEFAULT_MIN_COVERAGE)
      .describe("Below this `coverage` no model is asked, and the answer says that nothing was found"),
    { also: ["coverageThreshold"] },
  ),
  stream: z.boolean().default(false),
});
export type AnswerInput = z.output<typeof answerBodySchema>;

const answerFields = {
  answer: z.string().describe("With `[n]` after what rests on the n-th citation"),
  citations: z.array(citationSchema).describe("What `[1]` in the answer stands for is the first one"),
  found: z.boolean().describe("Whether the documents hold an answer: there are citations"),
  coverage: z.number().min(0).max(1).describe("The share of the question's words that the best passages hold"),
  model: z.string().nullable().describe("The model that answered; null if none was asked"),
  finishReason: finishReason.optional().describe("`length`: the answer is cut"),
  usage: usageSchema.describe("Of the answer alone"),
  costUsd: z.number().min(0).describe("Of the answer and of what was done for its search"),
  logId: z.string().describe("Feedback goes by it. A model's call has it in the call log, too"),
  rewrite: rewriteReportSchema.optional().describe("What became of `rewrite`, if it was asked for"),
  rerank: rerankReportSchema.optional().describe("What became of `rerank`, if it was asked for"),
  warnings: z.array(z.string()).optional(),
};
export const answerSchema = z.object(answerFields);
export type Answer = z.output<typeof answerSchema>;

/** One event of the stream: a part of the answer, then its citations, then the end. */
export const answerEventSchema = z.union([
  z.object({ delta: z.object({ content: z.string() }), done: z.literal(false) }),
  z.object({ citations: z.array(citationSchema), done: z.literal(false) }),
  z.object({ ...answerFields, done: z.literal(true) }),
  z.object({
    error: z.looseObject({ type: z.string(), code: z.string(), message: z.string() }),
    done: z.literal(true),
  }),
]);
export type AnswerEvent = z.output<typeof answerEventSchema>;
