import { z } from "zod";
import { idSchema } from "../lib/ids.ts";

/** The body of `PUT /rag/settings`. */
export const ragSettingsBodySchema = z.strictObject({
  embeddingModel: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .describe("Any embedding model of `GET /ai/models?type=embedding` that you can call; null: the platform's"),
});
export type RagSettingsBody = z.output<typeof ragSettingsBodySchema>;

export const ragSettingsSchema = z.object({
  embeddingModel: z.string().describe("The model that embeds documents from now on"),
  models: z
    .array(
      z.object({
        model: z.string(),
        dimensions: z.int(),
        documents: z.int().describe("Documents that it embedded"),
        isPresent: z.boolean().describe("Whether it is the model that embeds documents now"),
      }),
    )
    .describe("The models that embedded the documents that are there; a query searches up to 4 of them by meaning"),
  reindex: z
    .object({ jobId: idSchema("job"), model: z.string(), moved: z.int() })
    .optional()
    .describe("The job that moves documents to a model, while there is one"),
});

export const reindexResultSchema = z.object({
  model: z.string(),
  moved: z
    .int()
    .describe(
      "Documents that were moved to the model; those that a worker moved just before it died may not be counted",
    ),
  left: z.int().describe("Documents that other models still serve, since they were being ingested meanwhile"),
});
export type ReindexResult = z.output<typeof reindexResultSchema>;
export type RagSettings = z.output<typeof ragSettingsSchema>;
