import type { Db, UpdateFilter } from "mongodb";
import { defined } from "../lib/defined.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst, findPage, ofKey, type Page, type PageQuery } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne } from "./writes.ts";

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
/** States from which a batch can be cancelled. */
export const cancellableFileBatchStates: readonly FileBatchState[] = ["validating", "in_progress"];

/** What clients upload files for; `batch_output` is the answers to a batch. */
export const filePurposes = ["batch", "batch_output", "assistants", "user_data"] as const;
type FilePurpose = (typeof filePurposes)[number];

/** A file: requests of a batch as JSON lines, their answers, or a document. Its bytes are in the source store, under its id. */
export type FileRecord = TenantOwned & {
  filename: string;
  purpose: FilePurpose;
  /** The key that uploaded it; absent in older records, and of answers. */
  keyId?: string;
  bytes: number;
  createdAt: Date;
  /** Time from which nobody sees the file. */
  expiresAt?: Date;
  /** When a sweep removes one that expires; later than `expiresAt` while a batch reads it. */
  removeAt?: Date;
};

/** What is wrong with a line of an input file. */
export type FileBatchFault = { code: string; message: string; param: string | null; line: number | null };

/** A batch as a client of OpenAI's or Anthropic's surface made it: a file of requests, each a job of its own. */
export type FileBatchRecord = TenantOwned & {
  keyId: string;
  /** The subject of the key. */
  startedBy?: string;
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
  /** Failed requests that expired at their provider; set at the end of a batch of messages. */
  expired?: number;
  /** For a batch of messages: path and headers under which requests for Anthropic's own models are forwarded. */
  sentWith?: { path: string; headers: Record<string, string> };
  /** For a batch of messages: when its results are to be deleted, and when they were. */
  expireAt?: Date;
  archivedAt?: Date;
  faults?: FileBatchFault[];
  /** Chosen beforehand, so that a second attempt writes the same files. */
  outputFileId: string;
  errorFileId: string;
  /** Seconds after which the files of its answers expire. */
  outputExpiresAfter?: number;
  createdAt: Date;
  /** When it was last changed or looked at. */
  updatedAt: Date;
  /** When it came into each state. */
  reachedAt: Partial<Record<FileBatchState, Date>>;
};

export const fileCollection = defineCollection<FileRecord>({
  name: "files",
  indexes: [
    { name: "tenant_newest", key: { tenantId: 1, _id: -1 } },
    { name: "expired", key: { removeAt: 1 }, sparse: true },
  ],
});

/** The time at which a file expires that is made then, and is kept for so many seconds. */
export function expiryAfter(createdAt: Date, seconds: number | undefined): Pick<FileRecord, "expiresAt" | "removeAt"> {
  if (seconds === undefined) return {};
  const at = new Date(createdAt.getTime() + seconds * 1_000);
  return { expiresAt: at, removeAt: at };
}

/** Filter for the files that have not expired. */
const unexpired = () => ({ expiresAt: { $not: { $lte: new Date() } } });

export const fileBatchCollection = defineCollection<FileBatchRecord>({
  name: "fileBatches",
  indexes: [
    { name: "tenant_newest", key: { tenantId: 1, _id: -1 } },
    { name: "tenant_status", key: { tenantId: 1, status: 1 } },
    { name: "unfinished", key: { status: 1, updatedAt: 1 } },
    { name: "expiring", key: { expireAt: 1 }, sparse: true },
  ],
});

export function makeFileStore(db: Db) {
  const files = db.collection<FileRecord>(fileCollection.name);
  const batches = db.collection<FileBatchRecord>(fileBatchCollection.name);
  const { ensure, remove, count } = makeRecords(files);
  const { insert: insertBatch, get: findBatch, remove: removeBatch } = makeRecords(batches);
  return {
    find: (tenantId: string, fileId: string): Promise<FileRecord | null> =>
      files.findOne(ofTenant(tenantId, { _id: fileId, ...unexpired() })),
    /** Returns those of these files that exist. */
    findAll: (tenantId: string, fileIds: readonly string[]) =>
      files.find(ofTenant(tenantId, { _id: { $in: [...fileIds] }, ...unexpired() })).toArray(),
    ensure,
    remove,
    count,
    list: (
      tenantId: string,
      { purpose, keyId, ...page }: PageQuery & { purpose?: FilePurpose | undefined; keyId?: string | undefined },
    ): Promise<Page<FileRecord>> =>
      findPage(files, { tenantId, page, filter: { ...unexpired(), ...defined({ purpose, keyId }) } }),
    /** Files of all tenants that are to be removed. */
    expiredFiles: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(files, { removeAt: { $lte: before } }, { by: "removeAt", limit }),
    /** Leaves an expired file for a later sweep. */
    postponeRemoval: async ({ tenantId, _id }: TenantOwned, removeAt: Date): Promise<void> =>
      void (await files.updateOne(ofTenant(tenantId, { _id }), { $set: { removeAt } })),
    insertBatch,
    findBatch,
    removeBatch,
    /** The batches with one of these endpoints. */
    listBatches(
      tenantId: string,
      endpoints: readonly string[],
      { keyId, ...page }: PageQuery & { keyId?: string | undefined },
    ): Promise<Page<FileBatchRecord>> {
      const matches = ofKey(keyId, (batch: FileBatchRecord) => batch.keyId);
      return findPage(batches, { tenantId, page, filter: { endpoint: { $in: [...endpoints] } }, matches });
    },
    /** Changes a batch if it is in one of these states, else returns null. */
    changeBatch: (
      { _id, tenantId }: TenantOwned,
      from: readonly FileBatchState[],
      update: UpdateFilter<FileBatchRecord>,
    ) => changeOne(batches, ofTenant(tenantId, { _id, status: { $in: [...from] } }), update),
    /** Open batches of all tenants without a change since `before`, oldest first. */
    unfinishedBatches({ before, limit }: { before: Date; limit: number }) {
      const filter = { status: { $in: [...openFileBatchStates] }, updatedAt: { $lt: before } };
      return findFirst(batches, filter, { by: "updatedAt", limit });
    },
    /** Batches of all tenants whose results are to be deleted. */
    expiredBatches: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(batches, { expireAt: { $lte: before } }, { by: "expireAt", limit }),
    /** How many batches of a tenant have not ended; counts no further than `limit`. */
    countOpenBatches: (tenantId: string, limit: number) =>
      batches.countDocuments(ofTenant(tenantId, { status: { $in: [...openFileBatchStates] } }), { limit }),
    /** Whether an open batch reads a file. */
    async isInUse(tenantId: string, fileId: string): Promise<boolean> {
      const open = { inputFileId: fileId, status: { $in: [...openFileBatchStates] } };
      return (await batches.countDocuments(ofTenant(tenantId, open), { limit: 1 })) > 0;
    },
  };
}
