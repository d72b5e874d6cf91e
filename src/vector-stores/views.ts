import { z } from "zod";
import { hasExpired } from "../rag/known-collections.ts";
import { documentWarningSchema } from "../rag/schemas.ts";
import { collectionOf } from "../store/collection-filter.ts";
import type { CollectionRecord } from "../store/collection-store.ts";
import type { DocumentRecord } from "../store/document-record.ts";
import type { DocumentTotals } from "../store/document-totals.ts";
import type { VectorStoreBatch } from "../store/vector-store-batch-store.ts";
import { type FileState, fileStates } from "./schemas.ts";

const seconds = (date: Date) => Math.floor(date.getTime() / 1_000);
const count = z.int().min(0);

const fileCountsSchema = z.object({
  in_progress: count,
  completed: count,
  failed: count,
  cancelled: count,
  total: count,
});

/** A vector store as OpenAI's API shows it: https://platform.openai.com/docs/api-reference/vector-stores/object. */
export const vectorStoreSchema = z.object({
  id: z.string().describe("The name of the collection"),
  object: z.literal("vector_store"),
  created_at: count,
  name: z.string(),
  usage_bytes: count,
  file_counts: fileCountsSchema,
  status: z.enum(["expired", "in_progress", "completed"]),
  expires_after: z.object({ anchor: z.literal("last_active_at"), days: count }).nullable(),
  expires_at: count.nullable(),
  last_active_at: count.nullable(),
  metadata: z.record(z.string(), z.string()).nullable(),
});

type Totals = DocumentTotals[string];

const toCounts = ({ counts, cancelled }: Totals) => {
  const { queued, processing, indexed: completed, failed } = counts;
  const in_progress = queued + processing;
  return { in_progress, completed, failed, cancelled, total: in_progress + completed + failed + cancelled };
};

export function toVectorStore(record: CollectionRecord, totals: Totals): z.output<typeof vectorStoreSchema> {
  const { name, label = record.name === record._id ? "" : name, expiresAfterDays: days, expireAt } = record;
  const file_counts = toCounts(totals);
  return {
    id: name,
    object: "vector_store",
    created_at: seconds(record.createdAt),
    name: label,
    usage_bytes: totals.bytes,
    file_counts,
    status: hasExpired(record) ? "expired" : file_counts.in_progress > 0 ? "in_progress" : "completed",
    expires_after: days === undefined ? null : { anchor: "last_active_at", days },
    expires_at: expireAt === undefined ? null : seconds(expireAt),
    last_active_at: seconds(record.lastActiveAt),
    metadata: record.metadata ?? null,
  };
}

/** https://platform.openai.com/docs/api-reference/vector-stores-files/file-object */
export const storeFileSchema = z.object({
  id: z.string(),
  object: z.literal("vector_store.file"),
  created_at: count,
  vector_store_id: z.string(),
  status: z.enum(fileStates),
  usage_bytes: count,
  last_error: z
    .object({ code: z.enum(["server_error", "unsupported_file", "invalid_file"]), message: z.string() })
    .nullable(),
  attributes: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  chunking_strategy: z.object({ type: z.literal("other") }),
  warnings: z
    .array(documentWarningSchema)
    .optional()
    .describe("What it does not hold of the file; not in OpenAI's API"),
});

function stateOf({ status, error }: DocumentRecord): FileState {
  if (status === "failed") return error?.code === "cancelled" ? "cancelled" : "failed";
  return status === "indexed" ? "completed" : "in_progress";
}

function toLastError(error: DocumentRecord["error"]) {
  if (!error) return null;
  const isUnreadable = ["source_unreadable", "source_incomplete", "request_too_large"].includes(error.code);
  return { code: isUnreadable ? ("unsupported_file" as const) : ("server_error" as const), message: error.message };
}

export function toStoreFile(document: DocumentRecord): z.output<typeof storeFileSchema> {
  const { _id, fileId = _id, createdAt, source, metadata, error, warnings = [] } = document;
  const status = stateOf(document);
  return {
    id: fileId,
    object: "vector_store.file",
    created_at: seconds(createdAt),
    vector_store_id: collectionOf(document),
    status,
    usage_bytes: source.bytes ?? 0,
    last_error: status === "failed" ? toLastError(error) : null,
    attributes: metadata,
    chunking_strategy: { type: "other" },
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}

/** https://platform.openai.com/docs/api-reference/vector-stores-file-batches/batch-object */
export const fileBatchSchema = z.object({
  id: z.string(),
  object: z.literal("vector_store.files_batch"),
  created_at: count,
  vector_store_id: z.string(),
  status: z.enum(fileStates),
  file_counts: fileCountsSchema,
});

/** Files that have no document any more, or never get one, count as cancelled once the batch is over. */
export function toFileBatch(batch: VectorStoreBatch, totals: Totals): z.output<typeof fileBatchSchema> {
  const known = toCounts(totals);
  const total = batch.items.length;
  const missing = Math.max(0, total - known.total);
  const counts = {
    ...known,
    in_progress: known.in_progress + (batch.isOpen ? missing : 0),
    cancelled: known.cancelled + (batch.isOpen ? 0 : missing),
    total,
  };
  const ended = counts.failed === total ? "failed" : "completed";
  const status = batch.isCancelled ? "cancelled" : counts.in_progress > 0 ? "in_progress" : ended;
  return {
    id: batch._id,
    object: "vector_store.files_batch",
    created_at: seconds(batch.createdAt),
    vector_store_id: batch.collection,
    status,
    file_counts: counts,
  };
}
