import { z } from "zod";
import { idSchema } from "../../src/ids.ts";
import { shownStates } from "../../src/rag/document-state.ts";
import {
  type DocumentView,
  documentViewSchema,
  fileFieldsSchema,
  ingestBodySchema,
  ingestResultSchema,
  queryBodySchema,
  queryResultSchema,
} from "../../src/rag/schemas.ts";
import { listQuery } from "../list-query.ts";
import { uploadedFileSchema } from "../middleware/multipart.ts";
import { acceptedSchema, readPreference, replyWithJob, reserveJob, withCallback } from "../prefer.ts";
import { type AnyRoute, route } from "../route.ts";

const tags = ["Knowledge retrieval"];
const params = z.object({ id: idSchema("document") });

const [byUrl, byContent] = ingestBodySchema.options;
const fileBodySchema = fileFieldsSchema.extend({
  file: uploadedFileSchema,
  callback: z
    .string()
    .min(1)
    .max(8_192)
    .transform((url) => ({ url }))
    .optional()
    .describe("Where to tell of the job's end: in a form, the URL itself"),
});

const ingest = route({
  method: "post",
  path: "/rag/ingest",
  auth: "member",
  tags,
  summary: "Ingest a URL, a text or a file",
  description:
    "PDF, DOCX, HTML, Markdown or plain text, told by content first, then by type, then by name. The same URL keeps its " +
    "document: queries see the former version until the new one is complete.",
  body: z.union([byUrl.extend(withCallback), byContent.extend(withCallback)]),
  bodyLimit: "content",
  multipart: fileBodySchema,
  isAsync: true,
  responses: {
    201: { description: "The document is indexed", body: ingestResultSchema },
    202: { description: "The document is being indexed", body: acceptedSchema },
  },
  errors: ["source_refused", "source_unreachable", "source_unreadable", "request_too_large"],
  example: { content: "# Pump P-100\n\nBleed the pump before the season.", title: "Pump manual" },
  async handler(input) {
    const { body, caller, platform } = input;
    const isInteractive = readPreference(input.header("prefer")).waitMs > 0;
    const reserved = await reserveJob(input, body.callback);
    if ("job" in reserved) return replyWithJob(input, reserved.job);
    const source = "file" in body ? toFileInput(body) : body;
    const { job } = await platform.rag.accept(caller, source, isInteractive, reserved.jobId);
    return replyWithJob(input, job);
  },
});

type FileBody = z.output<typeof fileBodySchema>;

function toFileInput({ file, title, metadata }: FileBody) {
  const { bytes, filename, mediaType } = file;
  return {
    title,
    metadata,
    file: {
      bytes,
      ...(filename ? { name: filename.slice(-255) } : {}),
      ...(mediaType ? { type: mediaType.slice(0, 255) } : {}),
    },
  };
}

const documentsQuery = listQuery.extend({ status: z.enum(shownStates).default("indexed") });

const listDocuments = route({
  method: "get",
  path: "/rag/documents",
  auth: "member",
  tags,
  summary: "Documents of the tenant, newest first",
  description: 'A bare array; the next page is in the header `Link` with `rel="next"`.',
  query: documentsQuery,
  responses: { 200: { description: "A page of documents", body: z.array(documentViewSchema) } },
  async handler({ query, caller, platform }) {
    const { data, nextCursor } = await platform.rag.list(caller, query);
    return {
      status: 200,
      body: data,
      ...(nextCursor === null ? {} : { headers: { link: nextLink(query, nextCursor) } }),
    };
  },
});

function nextLink({ status, limit }: z.output<typeof documentsQuery>, cursor: string): string {
  return `</rag/documents?${new URLSearchParams({ status, limit: String(limit), cursor })}>; rel="next"`;
}

const getDocument = route({
  method: "get",
  path: "/rag/documents/:id",
  auth: "member",
  tags,
  summary: "One document",
  params,
  responses: { 200: { description: "The document", body: documentViewSchema } },
  async handler({ params: { id }, caller, platform }) {
    const body: DocumentView = await platform.rag.get(caller, id);
    return { status: 200, body };
  },
});

const query = route({
  method: "post",
  path: "/rag/query",
  auth: "member",
  tags,
  summary: "Find passages by meaning, words, or both",
  body: queryBodySchema,
  responses: { 200: { description: "Passages, best first", body: z.object({ results: z.array(queryResultSchema) }) } },
  example: { query: "When is the pump bled?", topK: 5 },
  async handler({ body, caller, platform, signal }) {
    return { status: 200, body: { results: await platform.rag.query(caller, body, signal) } };
  },
});

const removeDocument = route({
  method: "delete",
  path: "/rag/documents/:id",
  auth: "member",
  tags,
  summary: "Delete a document with all its chunks",
  description: "A document that is still being indexed is deleted too; its job is cancelled.",
  params,
  responses: { 204: { description: "It is gone" } },
  async handler({ params: { id }, caller, platform }) {
    await platform.rag.remove(caller, id);
    return { status: 204 };
  },
});

export const ragRoutes: readonly AnyRoute[] = [ingest, listDocuments, getDocument, query, removeDocument];
