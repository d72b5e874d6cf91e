import { z } from "zod";
import { batchEndpoints } from "../../../src/batches/file/read-lines.ts";
import { withFewFields } from "../../../src/lib/bounded-json.ts";
import { withoutNulls } from "../../../src/lib/defined.ts";
import { idSchema } from "../../../src/lib/ids.ts";
import { limiting } from "../../../src/lib/limiting.ts";
import { type FileBatchRecord, type FileBatchState, fileBatchStates } from "../../../src/store/file-store.ts";
import { ownKeyOf } from "../../../src/tenancy/roles.ts";
import { declareRoutes } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { expiresAfterSchema } from "./files.ts";
import { afterQuery, openAiListOf, toOpenAiList, toPageQuery, toSeconds } from "./lists.ts";

const DAY_S = 86_400;
/** OpenAI's own limit. */
const MAX_METADATA_FIELDS = 16;

const seconds = z.number().int().nullable();
const batchSchema = z.object({
  id: z.string(),
  object: z.literal("batch"),
  endpoint: z.string(),
  errors: z
    .object({
      object: z.literal("list"),
      data: z.array(
        z.object({
          code: z.string(),
          message: z.string(),
          param: z.string().nullable(),
          line: z.number().int().nullable(),
        }),
      ),
    })
    .nullable(),
  input_file_id: z.string(),
  completion_window: z.string(),
  status: z.enum(fileBatchStates),
  output_file_id: z.string().nullable(),
  error_file_id: z.string().nullable(),
  created_at: z.number().int(),
  expires_at: z.number().int(),
  in_progress_at: seconds,
  finalizing_at: seconds,
  completed_at: seconds,
  failed_at: seconds,
  cancelling_at: seconds,
  cancelled_at: seconds,
  expired_at: z.null(),
  request_counts: z.object({ total: z.number().int(), completed: z.number().int(), failed: z.number().int() }),
  metadata: z.record(z.string(), z.string()).nullable(),
});

const params = z.object({ id: idSchema("fileBatch") });

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const openAiBatchRoutes = [
  routes.post("/v1/batches", {
    summary: "Answer a file of requests, at half the price",
    description: "Each line becomes a job of its own, as with `prefer_async`; the responses are written into a file.",
    body: z.object({
      input_file_id: idSchema("file"),
      endpoint: z.enum(batchEndpoints),
      completion_window: z.literal("24h"),
      metadata: withFewFields(MAX_METADATA_FIELDS, z.record(z.string().max(64), z.string().max(512))).nullish(),
      output_expires_after: limiting(
        expiresAfterSchema.optional().describe("The files of the answers are gone so long after they were made"),
      ),
    }),
    responses: { 200: { description: "The batch", body: named("Batch", batchSchema) } },
    errors: ["not_found", "quota_exceeded"],
    async result({ body, caller, platform }) {
      const { input_file_id: inputFileId, endpoint, completion_window: completionWindow, metadata } = body;
      const outputExpiresAfter = body.output_expires_after?.seconds;
      const input = { inputFileId, endpoint, completionWindow, ...withoutNulls({ metadata, outputExpiresAfter }) };
      await platform.vectorStores.files.findFile(caller, inputFileId);
      await platform.quotas.check(caller.tenantId, "openJobs");
      await platform.quotas.check(caller.tenantId, "openBatches");
      await platform.quotas.check(caller.tenantId, "storedBytes"); // the responses become files
      return toView(await platform.batches.files.create(caller, input));
    },
  }),
  routes.get("/v1/batches", {
    summary: "Batches, newest first",
    query: afterQuery,
    responses: {
      200: {
        description: "A page of batches",
        body: openAiListOf(batchSchema, { first_id: z.string().nullable(), last_id: z.string().nullable() }),
      },
    },
    async result({ query, caller, platform }) {
      const page = toOpenAiList(
        await platform.store.files.listBatches(caller.tenantId, batchEndpoints, {
          ...toPageQuery(query),
          keyId: ownKeyOf(caller),
        }),
        toView,
      );
      return { ...page, first_id: page.data[0]?.id ?? null, last_id: page.data.at(-1)?.id ?? null };
    },
  }),
  routes.get("/v1/batches/:id", {
    summary: "One batch",
    params,
    responses: { 200: { description: "The batch", body: batchSchema } },
    result: async ({ params: { id }, caller, platform }) => toView(await platform.batches.files.batch(caller, id)),
  }),
  routes.post("/v1/batches/:id/cancel", {
    summary: "Stop a batch",
    description: "The responses so far are in its files.",
    params,
    responses: { 200: { description: "The batch", body: batchSchema } },
    errors: ["wrong_state"],
    result: async ({ params: { id }, caller, platform }) => toView(await platform.batches.files.cancel(caller, id)),
  }),
];

function toView(batch: FileBatchRecord): z.output<typeof batchSchema> {
  const { status, faults, reachedAt, completed, failed, total } = batch;
  const at = (state: FileBatchState) => {
    const date = reachedAt[state];
    return date === undefined ? null : toSeconds(date);
  };
  const created = toSeconds(batch.createdAt);
  const hasFiles = status === "completed" || status === "cancelled";
  return {
    id: batch._id,
    object: "batch",
    endpoint: batch.endpoint,
    errors: faults === undefined ? null : { object: "list", data: faults },
    input_file_id: batch.inputFileId,
    completion_window: batch.completionWindow,
    status,
    output_file_id: hasFiles && completed > 0 ? batch.outputFileId : null,
    error_file_id: hasFiles && failed > 0 ? batch.errorFileId : null,
    created_at: created,
    expires_at: created + DAY_S,
    in_progress_at: at("in_progress"),
    finalizing_at: at("finalizing"),
    completed_at: at("completed"),
    failed_at: at("failed"),
    cancelling_at: at("cancelling"),
    cancelled_at: at("cancelled"),
    expired_at: null,
    request_counts: { total, completed, failed },
    metadata: batch.metadata ?? null,
  };
}
