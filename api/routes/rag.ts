import { z } from "zod";
import { defined } from "../../src/lib/defined.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { collectionNameSchema } from "../../src/rag/collections.ts";
import { chunkPlaceFields, queryBodySchema, queryOutcomeSchema } from "../../src/rag/query-schemas.ts";
import {
  documentChangeSchema,
  documentViewSchema,
  fileFieldsSchema,
  ingestBodySchema,
  ingestResultSchema,
  withOneSource,
} from "../../src/rag/schemas.ts";
import { ragSettingsBodySchema, ragSettingsSchema, reindexResultSchema } from "../../src/rag/settings-schemas.ts";
import { shownStates } from "../../src/store/document-state.ts";
import { listOf, listQuery, totalHeader } from "../list-query.ts";
import { uploadedFileSchema } from "../middleware/multipart.ts";
import { acceptedSchema, serveJob, withCallback } from "../prefer.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const params = z.object({ id: idSchema("document") });

const [byUrl, byContent] = ingestBodySchema.options;
const fileBodySchema = named(
  "IngestForm",
  fileFieldsSchema.extend({
    file: uploadedFileSchema,
    callback: z
      .string()
      .min(1)
      .max(8_192)
      .transform((url) => ({ url }))
      .optional()
      .describe("Where to report the job's end: in a form, the URL itself"),
  }),
);

const documentsQuery = listQuery.extend({
  status: z.enum(shownStates).default("indexed"),
  title: z.string().trim().min(1).max(200).optional().describe("Documents whose title holds this text, in any case"),
  collection: collectionNameSchema
    .optional()
    .describe("Documents of this collection; default: all that the key may use"),
});

/** A list of chunks continues at a chunk's number. */
const chunksQuery = listQuery.extend({
  cursor: z.coerce.number().int().min(0).max(1_000_000).optional().describe("`nextCursor` of the page before"),
  chunkId: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe("The chunk that the first page begins with, as of a citation"),
});
const chunkSchema = named(
  "Chunk",
  z.object({
    chunkId: z.string(),
    n: z.int().min(0).describe("Place in the document, from 0"),
    content: z.string(),
    tokens: z.int().min(0),
    ...chunkPlaceFields,
  }),
);

const settingsSchema = named("RagSettings", ragSettingsSchema);
const aboutModels =
  "Documents keep the vectors of the model that embedded them, and are found all the same: a query is embedded once by each " +
  "of these models, up to 4, and their results are united by rank.";

type FileBody = z.output<typeof fileBodySchema>;

/** The body of a call that only starts a job. */
const jobRequest = named("JobRequest", z.object(withCallback));

const routes = declareRoutes({ auth: "member", tags: ["Knowledge retrieval"] });

export const ragRoutes = [
  routes.post("/rag/ingest", {
    summary: "Ingest a URL, a text or a file",
    description:
      "PDF, DOCX, XLSX, PPTX, HTML, Markdown, CSV or plain text; the content decides first, then the type, then the name. " +
      "Send exactly one of `url`, `content` and `file`. The same URL keeps its document: queries see the earlier version " +
      "until the new one is complete. A document with the content of an earlier one names it in `duplicateOf`.",
    body: named(
      "IngestRequest",
      withOneSource("json", z.union([byUrl.extend(withCallback), byContent.extend(withCallback)])),
    ),
    bodyLimit: "content",
    multipart: withOneSource("multipart", fileBodySchema),
    isAsync: true,
    responses: {
      201: { description: "The document is indexed", body: ingestResultSchema },
      202: { description: "The document is being indexed", body: acceptedSchema },
    },
    errors: [
      "source_refused",
      "source_unreachable",
      "source_unreadable",
      "source_incomplete",
      "compliance_blocked",
      "request_too_large",
      "quota_exceeded",
      "not_found",
      "wrong_state",
    ],
    example: { content: "# Pump P-100\n\nBleed the pump before the season.", title: "Pump manual" },
    handler(input) {
      const { body, caller, platform } = input;
      const document = "file" in body ? toFileInput(body) : body;
      return serveJob(input, { accept: (job) => platform.rag.accept({ caller, document, ...job }), status: 201 });
    },
  }),
  routes.get("/rag/documents", {
    summary: "Documents of the tenant, newest first",
    description:
      'A bare array; the next page is in the header `link` with `rel="next"`, how many are in this state in `x-total-count`. ' +
      "With `title` a page looks at 5,000 documents at most: it may have few items, or none, and still a next page.",
    query: documentsQuery,
    responses: {
      200: {
        description: "A page of documents",
        body: z.array(documentViewSchema),
        headers: { link: 'Where the next page is, as `</rag/documents?…>; rel="next"`', ...totalHeader },
      },
    },
    async handler({ query, caller, platform }) {
      const { data, nextCursor, total } = await platform.rag.list(caller, query);
      const next = nextCursor === null ? {} : { link: nextLink(query, nextCursor) };
      return { status: 200, body: data, headers: { "x-total-count": String(total), ...next } };
    },
  }),
  routes.get("/rag/documents/:id", {
    summary: "One document",
    params,
    responses: { 200: { description: "The document", body: documentViewSchema } },
    result: ({ params: { id }, caller, platform }) => platform.rag.get(caller, id),
  }),
  routes.patch("/rag/documents/:id", {
    summary: "Change the title, name, metadata, expiry or refreshes of a document",
    description: "What is left out stays. The source is not read again: searches by words find a new title once it is.",
    params,
    body: named("DocumentChange", documentChangeSchema),
    responses: { 200: { description: "The document", body: documentViewSchema } },
    example: { metadata: { year: 2026 } },
    errors: ["compliance_blocked"],
    result: ({ params: { id }, body, caller, platform }) => platform.rag.describe(caller, id, body),
  }),
  routes.post("/rag/documents/:id/refresh", {
    summary: "Read the URL of a document again, if it has changed",
    description:
      "By the `ETag` and `Last-Modified` of its last reading; a server without them is read in full. Queries see the earlier " +
      "version until the new one is complete.",
    params,
    body: jobRequest,
    isBodyOptional: true,
    isAsync: true,
    responses: {
      200: {
        description: "The document is indexed; `unchanged` when there was nothing to do",
        body: ingestResultSchema,
      },
      202: { description: "The URL is being read", body: acceptedSchema },
    },
    errors: [
      "source_refused",
      "source_unreachable",
      "source_unreadable",
      "source_incomplete",
      "compliance_blocked",
      "request_too_large",
      "wrong_state",
    ],
    handler(input) {
      const { caller, platform, params } = input;
      return serveJob(input, { accept: (job) => platform.rag.refresh({ caller, documentId: params.id, ...job }) });
    },
  }),
  routes.get("/rag/documents/:id/chunks", {
    summary: "The chunks of a document, in its order",
    description: "Those of the version that queries see; none before there is one.",
    params,
    query: chunksQuery,
    responses: { 200: { description: "A page of chunks", body: listOf(chunkSchema) } },
    result: ({ params: { id }, query, caller, platform }) => platform.rag.chunks(caller, id, query),
  }),
  routes.post("/rag/query", {
    summary: "Find chunks by meaning, words, or both",
    body: queryBodySchema,
    responses: {
      200: {
        description: "Chunks, best first",
        body: named("QueryResponse", queryOutcomeSchema),
      },
    },
    errors: ["unknown_model", "provider_not_configured", "provider_key_unreadable", "not_found", "compliance_blocked"],
    example: { query: "When is the pump bled?", topK: 5 },
    result: ({ body, caller, platform, signal }) => platform.rag.query(caller, body, signal),
  }),
  routes.get("/rag/settings", {
    auth: "admin",
    summary: "The embedding model of your documents",
    description: aboutModels,
    responses: { 200: { description: "Your tenant's settings", body: settingsSchema } },
    result: ({ caller, platform }) => platform.rag.settings(caller),
  }),
  routes.put("/rag/settings", {
    isForAllCollections: true,
    bodyLimit: "settings",
    auth: "admin",
    summary: "Choose the embedding model of your documents",
    description: `${aboutModels} Holds everywhere within 5 seconds.`,
    body: named("RagSettingsRequest", ragSettingsBodySchema),
    responses: { 200: { description: "They are set", body: settingsSchema } },
    errors: ["unknown_model", "provider_not_configured", "wrong_state"],
    example: { embeddingModel: "text-embedding-3-small" },
    result: ({ body, caller, platform }) => platform.rag.changeSettings(caller, body),
  }),
  routes.post("/rag/reindex", {
    isForAllCollections: true,
    bodyLimit: "settings",
    auth: "admin",
    summary: "Move all documents to the present embedding model",
    description:
      "A job that embeds the documents of other models again, one after the other; queries find each by its former vectors until " +
      "the new ones are complete. It can be cancelled and started again at any time; one runs at a time.",
    body: jobRequest,
    isAsync: true,
    responses: {
      200: { description: "The documents are moved", body: named("ReindexResult", reindexResultSchema) },
      202: { description: "They are being moved", body: acceptedSchema },
    },
    errors: ["wrong_state", "provider_not_configured", "quota_exceeded"],
    handler(input) {
      const { caller, platform } = input;
      return serveJob(input, {
        accept: (job) => platform.rag.reindexing.accept({ caller, ...job }),
        defaultWaitMs: 0,
      });
    },
  }),
  routes.delete("/rag/documents/:id", {
    summary: "Delete a document with all its chunks",
    description: "A document that is still being indexed is deleted too; its job is cancelled.",
    params,
    responses: { 204: { description: "It was deleted" } },
    result: ({ params: { id }, caller, platform }) => platform.rag.remove(caller, id),
  }),
];

function toFileInput({ file, callback: _callback, ...about }: FileBody) {
  const { bytes, filename, mediaType } = file;
  return {
    ...about,
    file: {
      bytes,
      ...defined({ name: filename.slice(-255) || undefined, type: mediaType.slice(0, 255) || undefined }),
    },
  };
}

function nextLink({ status, title, collection, limit }: z.output<typeof documentsQuery>, cursor: string): string {
  const query = { status, ...defined({ title, collection }), limit: String(limit), cursor };
  return `</rag/documents?${new URLSearchParams(query)}>; rel="next"`;
}
