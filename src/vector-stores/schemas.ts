import { z } from "zod";
import { withFewFields } from "../lib/bounded-json.ts";
import { idSchema } from "../lib/ids.ts";
import { attributeFilterSchema } from "../rag/metadata-filter.ts";
import { metadataKey, metadataValue } from "../rag/schemas.ts";

const MAX_FIELDS = 16;
/** Files of one batch; OpenAI's own limit is 2,000. */
export const MAX_BATCH_FILES = 500;

/** What filters of a search compare; they are the metadata of the file's document. */
export const attributesSchema = withFewFields(MAX_FIELDS, z.record(metadataKey, metadataValue));

/** Accepted for OpenAI's clients; chunks are made by the product's own rules. */
const chunkingStrategy = z.union([
  z.object({ type: z.literal("auto") }),
  z.object({
    type: z.literal("static"),
    static: z
      .object({
        max_chunk_size_tokens: z.int().min(100).max(4_096),
        chunk_overlap_tokens: z.int().min(0).max(2_048),
      })
      .refine(
        ({ max_chunk_size_tokens: size, chunk_overlap_tokens: overlap }) => overlap * 2 <= size,
        "the overlap must not be more than half of the chunk",
      ),
  }),
]);

const metadata = withFewFields(MAX_FIELDS, z.record(z.string().max(64), z.string().max(512)));
const expiresAfter = z.strictObject({ anchor: z.literal("last_active_at"), days: z.int().min(1).max(365) });

export const createStoreSchema = z.object({
  name: z.string().max(256).optional(),
  description: z.string().max(512).optional(),
  file_ids: z.array(idSchema("file")).max(MAX_BATCH_FILES).optional(),
  expires_after: expiresAfter.optional(),
  chunking_strategy: chunkingStrategy.optional(),
  metadata: metadata.nullish(),
});

export const updateStoreSchema = z.object({
  name: z.string().max(256).nullish(),
  expires_after: expiresAfter.nullish(),
  metadata: metadata.nullish(),
});

export const addFileSchema = z.object({
  file_id: idSchema("file"),
  attributes: attributesSchema.nullish(),
  chunking_strategy: chunkingStrategy.optional(),
});
export type AddFile = z.output<typeof addFileSchema>;

export const addBatchSchema = z
  .object({
    file_ids: z.array(idSchema("file")).min(1).max(MAX_BATCH_FILES).optional(),
    files: z.array(addFileSchema).min(1).max(MAX_BATCH_FILES).optional(),
    attributes: attributesSchema.nullish(),
    chunking_strategy: chunkingStrategy.optional(),
  })
  .refine(({ file_ids, files }) => (file_ids === undefined) !== (files === undefined), "give either file_ids or files");

export const updateFileSchema = z.object({ attributes: attributesSchema.nullable() });

export const fileStates = ["in_progress", "completed", "failed", "cancelled"] as const;
export type FileState = (typeof fileStates)[number];

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
