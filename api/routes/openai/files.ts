import { z } from "zod";
import { guardUpload } from "../../../src/batches/file/guard-upload.ts";
import { AppError } from "../../../src/lib/errors.ts";
import { idSchema } from "../../../src/lib/ids.ts";
import { limiting } from "../../../src/lib/limiting.ts";
import { sizeInWords } from "../../../src/lib/size-in-words.ts";
import { type FileRecord, filePurposes } from "../../../src/store/file-store.ts";
import { ownKeyOf } from "../../../src/tenancy/roles.ts";
import { keptFileSchema } from "../../middleware/multipart.ts";
import { declareRoutes } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { afterQuery, openAiListOf, toOpenAiList, toPageQuery, toSeconds } from "./lists.ts";

/** An hour and 30 days, as at OpenAI. */
const [LEAST_S, MOST_S] = [3_600, 2_592_000];

/** When a file expires. Forms send the number as text. */
export const expiresAfterSchema = z.strictObject({
  anchor: z.literal("created_at"),
  seconds: z.coerce.number<number | string>().int().min(LEAST_S).max(MOST_S),
});

const fileSchema = z.object({
  id: z.string(),
  object: z.literal("file"),
  bytes: z.number().int(),
  created_at: z.number().int(),
  expires_at: z.number().int().optional(),
  filename: z.string(),
  purpose: z.enum(filePurposes),
  status: z.literal("processed"),
});

const params = z.object({ id: idSchema("file") });
/** OpenAI's own limit for a file of requests; other files have `MAX_SOURCE_BYTES`. */
const MAX_BATCH_FILE_BYTES = 200 << 20;
const uploadSchema = z.object({
  file: keptFileSchema,
  purpose: z.enum(["batch", "assistants", "user_data"]),
  expires_after: limiting(expiresAfterSchema.optional()),
});

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const openAiFileRoutes = [
  routes.post("/v1/files", {
    summary: "Upload a file: requests of a batch, or a document",
    description:
      "With the purpose `batch` JSON lines, each `{ custom_id, method, url, body }`, 200 MiB and 50,000 of them at most. With `assistants` or `user_data` a document " +
      "for vector stores. Where your guards mask or block, its text is guarded before it is kept, line by line of a batch, and a file that " +
      "is no text is refused (`compliance_blocked`) unless `unreadable` is `pass`. A key that is limited to collections sees the files alone that it has uploaded.",
    body: named("FileUpload", uploadSchema),
    multipart: uploadSchema,
    keepsFile: {
      maxBytes: MAX_BATCH_FILE_BYTES,
      async keep({ platform: { quotas, batches, guards }, caller }, chunks) {
        const { tenantId } = caller;
        await quotas.check(tenantId, "files");
        const counted = async function* () {
          for await (const chunk of chunks) {
            await quotas.check(tenantId, "storedBytes", chunk.length);
            yield chunk;
          }
        };
        const guard = await guards.forCall(caller);
        const isGuarded = guard?.has("input", "mask", "block") || guard?.has("ingest", "mask", "block");
        return batches.files.keepContent(tenantId, guard && isGuarded ? guardUpload(guard, counted()) : counted());
      },
    },
    responses: { 200: { description: "The file", body: named("File", fileSchema) } },
    errors: ["quota_exceeded", "compliance_blocked"],
    async result({ body, caller, platform }) {
      const { bytes } = body.file;
      const { filename } = await platform.guards.take(caller, "ingest", { filename: body.file.filename });
      const { sourceBytes } = platform.config.limits;
      if (body.purpose !== "batch" && bytes > sourceBytes) {
        const message = `A document has ${sizeInWords(sourceBytes)} at most (MAX_SOURCE_BYTES).`;
        throw new AppError("request_too_large", message, { param: "file" });
      }
      const about = { filename: filename.slice(0, 200), bytes, purpose: body.purpose, keyId: caller.keyId };
      const kept = { _id: body.file.take(), ...about, expiresAfter: body.expires_after?.seconds };
      return toView(await platform.batches.files.addKept(caller.tenantId, kept));
    },
  }),
  routes.get("/v1/files", {
    summary: "Files, newest first",
    query: afterQuery.extend({ purpose: z.enum(filePurposes).optional() }),
    responses: { 200: { description: "A page of files", body: openAiListOf(fileSchema, {}) } },
    result: async ({ query: { purpose, ...page }, caller, platform }) =>
      toOpenAiList(
        await platform.store.files.list(caller.tenantId, { ...toPageQuery(page), purpose, keyId: ownKeyOf(caller) }),
        toView,
      ),
  }),
  routes.get("/v1/files/:id", {
    summary: "One file",
    params,
    responses: { 200: { description: "The file", body: fileSchema } },
    result: async ({ params: { id }, caller, platform }) =>
      toView(await platform.vectorStores.files.findFile(caller, id)),
  }),
  routes.get("/v1/files/:id/content", {
    summary: "The content of a file",
    params,
    responses: { 200: { description: "JSON lines", contentType: "application/jsonl", body: z.string() } },
    async handler({ params: { id }, caller, platform, inTurn }) {
      const { purpose } = await platform.vectorStores.files.findFile(caller, id);
      const { length, pieces } = await inTurn(() => platform.batches.files.openContent(caller.tenantId, id));
      const isDocument = purpose === "assistants" || purpose === "user_data";
      const type = isDocument ? "application/octet-stream" : "application/jsonl";
      return { status: 200, headers: { "content-type": type }, bytes: pieces, length };
    },
  }),
  routes.delete("/v1/files/:id", {
    summary: "Delete a file",
    params,
    responses: {
      200: {
        description: "It is deleted",
        body: z.object({ id: z.string(), object: z.literal("file"), deleted: z.literal(true) }),
      },
    },
    errors: ["wrong_state"],
    async result({ params: { id }, caller, platform }) {
      await platform.vectorStores.files.deleteFile(caller, id);
      return { id, object: "file", deleted: true };
    },
  }),
];

function toView({ _id, bytes, createdAt, expiresAt, ...about }: FileRecord): z.output<typeof fileSchema> {
  const { filename, purpose } = about;
  return {
    id: _id,
    object: "file",
    bytes,
    created_at: toSeconds(createdAt),
    ...(expiresAt && { expires_at: toSeconds(expiresAt) }),
    filename,
    purpose,
    status: "processed",
  };
}
