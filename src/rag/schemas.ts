import { z } from "zod";
import { withFewFields } from "../bounded-json.ts";
import { idSchema } from "../ids.ts";
import { errorViewSchema } from "../jobs/job-record.ts";
import { shownStates } from "./document-state.ts";

/** The document types that can be read. */
export const sourceTypes = ["pdf", "docx", "html", "markdown", "text"] as const;
export type SourceType = (typeof sourceTypes)[number];

export const MAX_TITLE_LENGTH = 300;
const MAX_METADATA_FIELDS = 32;
const MAX_METADATA_LENGTH = 256;

const metadataKey = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, - or _");
const metadataValue = z.union([z.string().max(MAX_METADATA_LENGTH), z.number(), z.boolean()]);

/** Facts about a document that queries can filter on: a flat object. */
export const metadataSchema = withFewFields(MAX_METADATA_FIELDS, z.record(metadataKey, metadataValue));
export type Metadata = z.output<typeof metadataSchema>;

const title = z.string().trim().min(1).max(MAX_TITLE_LENGTH);

/** The body of `POST /rag/ingest` as JSON. Files come as multipart/form-data instead. */
export const ingestBodySchema = z.union([
  z.object({
    url: z.string().min(1).max(8_192).describe("Where to fetch a PDF, DOCX, HTML, Markdown or text document"),
    title: title.optional(),
    metadata: metadataSchema.optional(),
  }),
  z.object({
    content: z.string().min(1).describe("The text itself"),
    title: title.optional(),
    metadata: metadataSchema.optional(),
  }),
]);

/** The fields that accompany a file. */
export const fileFieldsSchema = z.object({
  title: title.optional(),
  metadata: z
    .string()
    .max(16_384)
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: "custom", message: "must be a JSON object" });
        return z.NEVER;
      }
    })
    .pipe(metadataSchema)
    .optional(),
});

export const ingestResultSchema = z.object({
  documentId: idSchema("document"),
  chunks: z.number().int().describe("Chunks that the document was split into"),
  status: z.enum(shownStates),
});
export type IngestResult = z.output<typeof ingestResultSchema>;

export const documentViewSchema = z.object({
  documentId: idSchema("document"),
  title: z.string(),
  chunks: z.number().int(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  status: z.enum(shownStates),
  source: z.object({
    kind: z.enum(["url", "content", "file"]),
    url: z.string().optional(),
    name: z.string().optional(),
    type: z.string().optional(),
  }),
  metadata: metadataSchema,
  jobId: idSchema("job"),
  error: errorViewSchema.optional(),
});
export type DocumentView = z.output<typeof documentViewSchema>;

export const queryModes = ["hybrid", "vector", "lexical"] as const;

export const MAX_TOP_K = 100;
const filterValue = z.union([metadataValue, z.array(metadataValue).min(1).max(64)]);

/** The body of `POST /rag/query`. */
export const queryBodySchema = z.object({
  query: z.string().trim().min(1).max(8_192),
  topK: z.number().int().min(1).max(MAX_TOP_K).default(10),
  documentIds: z.array(idSchema("document")).min(1).max(1_000).optional(),
  filter: withFewFields(MAX_METADATA_FIELDS, z.record(metadataKey, filterValue))
    .optional()
    .describe("Documents whose metadata have each of these values, or one of a list"),
  mode: z.enum(queryModes).default("hybrid"),
});
export type QueryInput = z.output<typeof queryBodySchema>;

export const queryResultSchema = z.object({
  content: z.string(),
  documentId: idSchema("document"),
  score: z.number().min(0).max(1).describe("(1 + cosine) / 2 of query and chunk, whatever the mode"),
  title: z.string(),
  chunkId: z.string(),
  page: z.number().int().optional(),
  heading: z.string().optional(),
});
export type QueryResult = z.output<typeof queryResultSchema>;
