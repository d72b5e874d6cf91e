import type { Db, UpdateFilter } from "mongodb";

import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";

/** States of a batch of OpenAI's surface, as its API names them: https://platform.openai.com/docs/api-reference/batch. */
export const fileBatchStates = [
  "validating",
  "in_progress",
  "finalizing",
  "completed",
  "failed",
  "cancelling",
  "cancelled",
] as const;
export type FileBatchState = (typeof fileBatchStates)[number];

export const openFileBatchStates: readonly FileBatchState[] = ["validating", "in_progress", "finalizing", "cancelling"];
/** From which a batch can be cancelled. */
export const cancellableFileBatchStates: readonly FileBatchState[] = ["validating", "in_progress"];

/** A file of JSON lines: the requests of a batch, or its answers. Its bytes are in the source store, under its id. */
export type FileDocument = TenantDocument & {
  filename: string;
  purpose: "batch" | "batch_output";
  bytes: number;
  createdAt: Date;
};

/** What is wrong with a line of an input file. */
export type FileBatchFault = { code: string; message: string; param: string | null; line: number | null };

/** A batch as a client of OpenAI's surface made it: a file of requests, each a job of its own. */
export type FileBatchDocument = TenantDocument & {
  keyId: string;
  jobId: string;
  endpoint: string;
  inputFileId: string;
  completionWindow: string;
  metadata?: Record<string, string>;
  status: FileBatchState;
  /** Lines of the file; 0 until it was read. */
  total: number;
  completed: number;
  failed: number;
  faults?: FileBatchFault[];
  /** Chosen ahead, so that a second try writes the same files. */
  outputFileId: string;
  errorFileId: string;
  createdAt: Date;
  /** When it was last changed or looked at. */
  updatedAt: Date;
  /** When it came into each state. */
  reachedAt: Partial<Record<FileBatchState, Date>>;
};

export const fileCollection = defineCollection<FileDocument>({
  name: "files",
  indexes: [{ name: "tenant_newest", key: { tenantId: 1, _id: -1 } }],
});

export const fileBatchCollection = defineCollection<FileBatchDocument>({
  name: "fileBatches",
  indexes: [
    { name: "tenant_newest", key: { tenantId: 1, _id: -1 } },
    { name: "unfinished", key: { status: 1, updatedAt: 1 } },
  ],
});

export type FileStore = {
  /** Records a file; the one that is there stays. */
  ensure(file: FileDocument): Promise<void>;
  find(tenantId: string, fileId: string): Promise<FileDocument | null>;
  list(
    tenantId: string,
    query: PageQuery & { purpose?: FileDocument["purpose"] | undefined },
  ): Promise<Page<FileDocument>>;
  remove(tenantId: string, fileId: string): Promise<boolean>;
  insertBatch(batch: FileBatchDocument): Promise<void>;
  findBatch(tenantId: string, batchId: string): Promise<FileBatchDocument | null>;
  listBatches(tenantId: string, page: PageQuery): Promise<Page<FileBatchDocument>>;
  /** Changes a batch that is in one of these states; null when it is not. */
  changeBatch(
    batch: Pick<FileBatchDocument, "_id" | "tenantId">,
    from: readonly FileBatchState[],
    update: UpdateFilter<FileBatchDocument>,
  ): Promise<FileBatchDocument | null>;
  removeBatch(tenantId: string, batchId: string): Promise<void>;
  /** Open batches of all tenants that nothing happened to since `before`, the oldest first. */
  unfinishedBatches(page: { before: Date; limit: number }): Promise<FileBatchDocument[]>;
  /** Whether a batch that has not ended reads a file. */
  isInUse(tenantId: string, fileId: string): Promise<boolean>;
};

export function makeFileStore(db: Db): FileStore {
  const files = db.collection<FileDocument>(fileCollection.name);
  const batches = db.collection<FileBatchDocument>(fileBatchCollection.name);
  return {
    async ensure({ _id, tenantId, ...fields }) {
      await files.updateOne(ofTenant(tenantId, { _id }), { $setOnInsert: fields }, { upsert: true });
    },
    find: (tenantId, fileId) => files.findOne(ofTenant(tenantId, { _id: fileId })),
    list: (tenantId, { purpose, ...page }) =>
      findPage(files, { tenantId, page, filter: purpose === undefined ? {} : { purpose } }),
    async remove(tenantId, fileId) {
      return (await files.deleteOne(ofTenant(tenantId, { _id: fileId }))).deletedCount === 1;
    },
    insertBatch: async (batch) => void (await batches.insertOne(batch)),
    findBatch: (tenantId, batchId) => batches.findOne(ofTenant(tenantId, { _id: batchId })),
    listBatches: (tenantId, page) => findPage(batches, { tenantId, page }),
    changeBatch: ({ _id, tenantId }, from, update) =>
      batches.findOneAndUpdate(ofTenant(tenantId, { _id, status: { $in: [...from] } }), update, {
        returnDocument: "after",
      }),
    removeBatch: async (tenantId, batchId) => void (await batches.deleteOne(ofTenant(tenantId, { _id: batchId }))),
    unfinishedBatches: ({ before, limit }) =>
      batches
        .find({ status: { $in: [...openFileBatchStates] }, updatedAt: { $lt: before } })
        .sort({ updatedAt: 1 })
        .limit(limit)
        .toArray(),
    async isInUse(tenantId, fileId) {
      const open = { inputFileId: fileId, status: { $in: [...openFileBatchStates] } };
      return (await batches.countDocuments(ofTenant(tenantId, open), { limit: 1 })) > 0;
    },
  };
}
