import { z } from "zod";
import { errorViewSchema } from "../jobs/job-view.ts";
import { withFewFields } from "../lib/bounded-json.ts";
import { idSchema } from "../lib/ids.ts";
import { limiting } from "../lib/limiting.ts";
import { tryParseJson } from "../lib/try-parse-json.ts";
import { shownStates } from "../store/document-state.ts";
import { documentWarningCodes, MAX_WARNED_PAGES } from "../store/document-warning.ts";
import { collectionNameSchema } from "./collections.ts";

/** The readable document types. */
export const sourceTypes = ["pdf", "docx", "xlsx", "pptx", "html", "markdown", "csv", "text"] as const;
export type SourceType = (typeof sourceTypes)[number];

export const MAX_TITLE_LENGTH = 300;
export const MAX_METADATA_FIELDS = 32;
const MAX_METADATA_LENGTH = 512;

export const metadataKey = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, - or _");
export const metadataValue = z.union([z.string().max(MAX_METADATA_LENGTH), z.number(), z.boolean()]);

/** Facts about a document that queries can filter by: a flat object. */
export const metadataSchema = withFewFields(MAX_METADATA_FIELDS, z.record(metadataKey, metadataValue));
export type Metadata = z.output<typeof metadataSchema>;

/** Metadata as it is indexed: `key=value`, the value in JSON so that `1` and `"1"` differ. */
export function tagsOf(metadata: Metadata): string[] {
  return Object.entries(metadata).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
}

const title = z.string().trim().min(1).max(MAX_TITLE_LENGTH);

const sourceFields = ["url", "content", "file"] as const;

/** A schema of ingest bodies that first requires exactly one of `url`, `content` and `file`; JSON cannot hold a file. */
export function withOneSource<S extends z.ZodType>(form: "json" | "multipart", schema: S) {
  return z.preprocess((value, context) => {
    if (typeof value !== "object" || value === null) return value;
    const given = sourceFields.filter((field) => (Reflect.get(value, field) ?? null) !== null);
    const [only] = given;
    const isFitting = given.length === 1 && (only === "file") === (form === "multipart");
    if (isFitting) return value;
    const found = given.length === 0 ? "none of them" : given.join(" and ");
    const rule =
      given.length === 1
        ? `\`file\` is sent as multipart/form-data, \`url\` and \`content\` as JSON; this ${form} body has \`${only}\``
        : `must have exactly one of \`url\`, \`content\` and \`file\`; it has ${found}`;
    context.addIssue({ code: "custom", message: rule });
    return z.NEVER;
  }, schema);
}

const collection = limiting(
  collectionNameSchema
    .optional()
    .describe("The collection that it belongs to; default: `default`, or the only one that the key may use"),
);
const keeping = {
  documentId: idSchema("document")
    .optional()
    .describe("A document that gets this source in the place of its own; queries see the earlier version until then"),
  externalId: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Your own id, unique in the collection: a document that has it already is replaced as by `documentId`"),
  expiresAt: limiting(
    z.iso
      .datetime({ offset: true })
      .refine((text) => !(Date.parse(text) <= Date.now()), "must be in the future")
      .optional()
      .describe("From then on no query sees the document, and it is deleted"),
  ),
};
const requireComplete = z
  .boolean()
  .optional()
  .describe("Refuse the source, at each later reading too, if something of it would be lost; `false` ends that");
const refreshEveryHours = z
  .int()
  .min(1)
  .max(720)
  .optional()
  .describe("How often a URL is read again by itself, in hours; without it never");
const description = {
  title: title.optional(),
  metadata: metadataSchema.optional(),
  collection,
  requireComplete,
  ...keeping,
};

/** The body of `POST /rag/ingest` as JSON. Files come as multipart/form-data instead. */
export const ingestBodySchema = z.union([
  z.object({
    url: z.string().min(1).max(8_192).describe("Where to fetch a document of any type that is read"),
    refreshEveryHours,
    ...description,
  }),
  z.object({ content: z.string().min(1).describe("The text itself"), refreshEveryHours, ...description }),
]);

/** The fields that accompany a file. */
export const fileFieldsSchema = z.object({
  title: title.optional(),
  metadata: z
    .string()
    .max(16_384)
    .refine((text) => tryParseJson(text) !== undefined, "must be a JSON object")
    .transform(tryParseJson)
    .pipe(metadataSchema)
    .optional(),
  collection,
  requireComplete: z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .optional()
    .describe("`true` or `false`, as in JSON"),
  ...keeping,
});

/** The body of `PATCH /rag/documents/:id`. */
export const documentChangeSchema = z.object({
  title: title.optional(),
  name: z
    .string()
    .trim()
    .min(1)
    .max(255)
    .optional()
    .describe("Of a document of a file: the new name of that; the title too, where the name is the title"),
  metadata: metadataSchema.optional().describe("In the place of what there is"),
  expiresAt: limiting(keeping.expiresAt.nullable().describe("null: it does not expire")),
  refreshEveryHours: refreshEveryHours
    .nullable()
    .describe("Of a document of a URL; null: it is not read again by itself"),
});
export type DocumentChange = z.output<typeof documentChangeSchema>;

const duplicateOf = idSchema("document").describe("An earlier document of the same content");

/** Something of its source that a document does not hold, or may hold wrongly. */
export const documentWarningSchema = z.object({
  code: z.enum(documentWarningCodes),
  message: z.string().describe("A sentence for a person: what is missing or uncertain, and how much of it"),
  pages: z
    .array(z.int())
    .max(MAX_WARNED_PAGES)
    .optional()
    .describe("The pages that it is about, from 1; the first 100 of them"),
});
export type DocumentWarning = z.output<typeof documentWarningSchema>;
const warnings = z
  .array(documentWarningSchema)
  .optional()
  .describe(
    "What the document does not hold of its source; absent while nothing has been read, or by an earlier release",
  );

export const ingestResultSchema = z.object({
  documentId: idSchema("document"),
  chunks: z.number().int().describe("Chunks that the document was split into"),
  status: z.enum(shownStates),
  duplicateOf: duplicateOf.optional(),
  warnings,
  unchanged: z.literal(true).optional().describe("Of a refresh: the URL has not changed since it was read"),
});
export type IngestResult = z.output<typeof ingestResultSchema>;

export const documentViewSchema = z.object({
  documentId: idSchema("document"),
  title: z.string(),
  collection: z.string(),
  externalId: z.string().optional(),
  expiresAt: z.iso.datetime().optional(),
  refreshEveryHours: z.int().optional().describe("How often its URL is read again by itself"),
  refreshAt: z.iso.datetime().optional().describe("When that is next; absent once it failed five times in a row"),
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
  duplicateOf: duplicateOf.optional(),
  warnings,
  requireComplete: z.boolean().optional().describe("Whether a source of which something would be lost is refused"),
  embeddingModel: z.string().optional().describe("The model that made the vectors of its chunks"),
  dimensions: z.int().optional().describe("The length of these vectors"),
  error: errorViewSchema.optional(),
});
export type DocumentView = z.output<typeof documentViewSchema>;
