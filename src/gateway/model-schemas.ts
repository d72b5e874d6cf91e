import { z } from "zod";
import { efforts } from "./providers/model.ts";

/** One entry of `GET /ai/models`. */
export const modelEntrySchema = z.object({
  id: z.string(),
  name: z.string(),
  provider: z.string().describe("`openai`, `anthropic`, `edge`, or the name of a custom provider"),
  type: z.string(),
  contextWindow: z.number().int().positive(),
  inputCostPer1k: z.number().min(0).describe("USD for 1,000 tokens"),
  outputCostPer1k: z.number().min(0).describe("USD for 1,000 tokens"),
  supportedFeatures: z.array(z.string()),
  reasoningEfforts: z
    .array(z.enum(efforts))
    .optional()
    .describe("The efforts that it takes; of another one the next lower is used, and named in `x-svc-ignored`"),
  settings: z
    .array(z.string())
    .optional()
    .describe("Further settings that it takes; another one is left out, and named in `x-svc-ignored`"),
  temperature: z
    .object({ min: z.number(), max: z.number() })
    .optional()
    .describe("The temperatures that it takes; one beyond them is adjusted, and named in `x-svc-ignored`"),
  aliases: z.array(z.string()).optional().describe("Other names that it is called by"),
  batch: z.literal(true).optional().describe("Whether `prefer_async` answers through a batch, at half the price"),
  priceSource: z.string().optional(),
  priceDate: z.string().optional(),
});
export type ModelEntry = z.output<typeof modelEntrySchema>;

/** An entry of a tenant's list. */
export const listedModelSchema = modelEntrySchema.extend({
  available: z.boolean().describe("Whether your calls can use it right now"),
  unavailableBecause: z.string().optional(),
});
export type ListedModel = z.output<typeof listedModelSchema>;

/** Which models are listed. */
export const modelQuerySchema = z.strictObject({
  provider: z.string().min(1).max(40).optional().describe("Its id, or the name of a custom provider"),
  available: z.enum(["true", "false"]).optional().describe("Only those that your calls can use, or cannot use"),
  type: z.string().min(1).max(50).optional().describe("Task type, as `chat`, `coding`, `reasoning`, `embedding`"),
});
export type ModelQuery = z.output<typeof modelQuerySchema>;
