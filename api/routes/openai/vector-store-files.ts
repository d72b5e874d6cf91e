import { z } from "zod";
import { idSchema } from "../../../src/lib/ids.ts";
import {
  type AddFile,
  addBatchSchema,
  addFileSchema,
  fileStates,
  updateFileSchema,
} from "../../../src/vector-stores/schemas.ts";
import { fileBatchSchema, storeFileSchema } from "../../../src/vector-stores/views.ts";
import { wholeListQuery } from "../../list-query.ts";
import { declareRoutes } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { endsListOf, orderedQuery, storeParams, toEndsList, toOrderedPage } from "./vector-stores.ts";

const fileParams = storeParams.extend({ fileId: idSchema("file") });
const batchParams = storeParams.extend({ batchId: idSchema("vectorStoreBatch") });
const filesQuery = orderedQuery.extend({ filter: z.enum(fileStates).optional() });

const fileSchema = named("VectorStoreFile", storeFileSchema);
const batchSchema = named("VectorStoreFileBatch", fileBatchSchema);
const filePage = {
  200: { description: "A page of files", body: named("VectorStoreFileList", endsListOf(fileSchema)) },
};
const added = ["not_found", "quota_exceeded", "wrong_state", "compliance_blocked"] as const;

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

const toItem = ({ file_id: fileId, attributes }: Pick<AddFile, "file_id" | "attributes">) => ({
  fileId,
  attributes: attributes ?? undefined,
});

/** The JSON of a file's content, made as its texts are read. */
async function* toContentPage(batches: AsyncIterable<string[]>): AsyncGenerator<Buffer> {
  let before = '{"object":"vector_store.file_content.page","data":[';
  for await (const texts of batches)
    for (const text of texts) {
      yield Buffer.from(before + JSON.stringify({ type: "text", text }));
      before = ",";
    }
  yield Buffer.from(`${before === "," ? "" : before}],"has_more":false,"next_page":null}`);
}

export const vectorStoreFileRoutes = [
  routes.post("/v1/vector_stores/:id/files", {
    summary: "Add a file to a vector store",
    description: "A job reads it; poll the file until its `status` is `completed`. `chunking_strategy` is not used.",
    params: storeParams,
    body: named("VectorStoreFileRequest", addFileSchema),
    responses: { 200: { description: "The file in the store", body: fileSchema } },
    errors: added,
    example: { file_id: "file_01J00000000000000000000000", attributes: { year: 2026 } },
    result({ params: { id }, body, caller, platform, ignore }) {
      if (body.chunking_strategy?.type === "static") ignore("chunking_strategy");
      return platform.vectorStores.files.add(caller, id, toItem(body));
    },
  }),
  routes.get("/v1/vector_stores/:id/files", {
    summary: "Files of a vector store, newest first",
    params: storeParams,
    query: filesQuery,
    responses: filePage,
    async result({ params: { id }, query: { filter, ...page }, caller, platform }) {
      return toEndsList(await platform.vectorStores.files.list(caller, id, { ...toOrderedPage(page), filter }));
    },
  }),
  routes.get("/v1/vector_stores/:id/files/:fileId", {
    summary: "One file of a vector store",
    params: fileParams,
    responses: { 200: { description: "The file", body: fileSchema } },
    result: ({ params: { id, fileId }, caller, platform }) => platform.vectorStores.files.get(caller, id, fileId),
  }),
  routes.post("/v1/vector_stores/:id/files/:fileId", {
    summary: "Replace the attributes of a file in a vector store",
    params: fileParams,
    body: named("VectorStoreFileChange", updateFileSchema),
    responses: { 200: { description: "The file", body: fileSchema } },
    example: { attributes: { year: 2026 } },
    errors: ["compliance_blocked"],
    result: ({ params: { id, fileId }, body, caller, platform }) =>
      platform.vectorStores.files.update(caller, id, fileId, body.attributes ?? {}),
  }),
  routes.get("/v1/vector_stores/:id/files/:fileId/content", {
    summary: "The text of a file in a vector store, by its chunks",
    params: fileParams,
    query: wholeListQuery,
    responses: {
      200: {
        description: "The text",
        body: z.object({
          object: z.literal("vector_store.file_content.page"),
          data: z.array(z.object({ type: z.literal("text"), text: z.string() })),
          has_more: z.literal(false),
          next_page: z.null(),
        }),
      },
    },
    async handler({ params: { id, fileId }, caller, platform }) {
      const texts = await platform.vectorStores.files.content(caller, id, fileId);
      return {
        status: 200,
        headers: { "content-type": "application/json; charset=utf-8" },
        bytes: toContentPage(texts),
      };
    },
  }),
  routes.delete("/v1/vector_stores/:id/files/:fileId", {
    summary: "Take a file out of a vector store; the file itself stays",
    params: fileParams,
    responses: {
      200: {
        description: "It is out of the store",
        body: z.object({ id: z.string(), object: z.literal("vector_store.file.deleted"), deleted: z.literal(true) }),
      },
    },
    async result({ params: { id, fileId }, caller, platform }) {
      await platform.vectorStores.files.remove(caller, id, fileId);
      return { id: fileId, object: "vector_store.file.deleted", deleted: true };
    },
  }),
  routes.post("/v1/vector_stores/:id/file_batches", {
    summary: "Add up to 500 files to a vector store",
    description: "`files` has attributes for each, `file_ids` those of the body for all.",
    params: storeParams,
    body: named("VectorStoreFileBatchRequest", addBatchSchema),
    responses: { 200: { description: "The batch", body: batchSchema } },
    errors: added,
    example: { file_ids: ["file_01J00000000000000000000000"] },
    result({ params: { id }, body, caller, platform, ignore }) {
      const { files, file_ids = [], attributes, chunking_strategy } = body;
      const strategies = [chunking_strategy, ...(files ?? []).map((file) => file.chunking_strategy)];
      if (strategies.some((strategy) => strategy?.type === "static")) ignore("chunking_strategy");
      const items = files ?? file_ids.map((file_id) => ({ file_id, attributes }));
      return platform.vectorStores.fileBatches.create(caller, id, items.map(toItem));
    },
  }),
  routes.get("/v1/vector_stores/:id/file_batches/:batchId", {
    summary: "One batch of files; it can be read for seven days",
    params: batchParams,
    responses: { 200: { description: "The batch", body: batchSchema } },
    result: ({ params: { id, batchId }, caller, platform }) =>
      platform.vectorStores.fileBatches.get(caller, id, batchId),
  }),
  routes.post("/v1/vector_stores/:id/file_batches/:batchId/cancel", {
    summary: "Stop the files of a batch that are not completed yet",
    params: batchParams,
    responses: { 200: { description: "The batch", body: batchSchema } },
    result: ({ params: { id, batchId }, caller, platform }) =>
      platform.vectorStores.fileBatches.cancel(caller, id, batchId),
  }),
  routes.get("/v1/vector_stores/:id/file_batches/:batchId/files", {
    summary: "Files of a batch, newest first",
    params: batchParams,
    query: filesQuery,
    responses: filePage,
    async result({ params: { id: name, batchId: id }, query: { filter, ...page }, caller, platform }) {
      const asked = { name, id, filter, ...toOrderedPage(page) };
      return toEndsList(await platform.vectorStores.fileBatches.listFiles(caller, asked));
    },
  }),
];
