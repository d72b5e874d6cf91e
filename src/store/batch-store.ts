import type { Db, UpdateFilter } from "mongodb";

import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { insertIfAbsent, insertOrFind, isDuplicateKey } from "./writes.ts";

/**
 * A *line* is one chat that shall be answered by a batch; it is accepted until its job is on
 * record, and then waits until a batch takes it. A *batch* collects, is closed
 * when it is full or its time has come, is submitted to the provider, and has ended when every line of it has.
 */
export const lineStates = ["accepted", "waiting", "batched", "done", "cancelled"] as const;
export type LineState = (typeof lineStates)[number];

export const batchStates = ["collecting", "closed", "submitted", "ended"] as const;
export type BatchState = (typeof batchStates)[number];

/** One request that waits for its batch, or is in one. Its id is that of its caller's job. */
export type BatchLineDocument = TenantDocument & {
  keyId: string;
  surface: string;
  /** Lines of a group go together: one provider, one key, one model. */
  group: string;
  provider: string;
  providerKeyId: string;
  model: string;
  requestedModel: string;
  /** Why this model, for the answer. */
  reason: string;
  /** As the gateway asks a provider for it; the store looks at nothing in it. */
  request: object;
  state: LineState;
  batchId?: string;
  /** Batches that let it expire. */
  expiries: number;
  logId: string;
  /** Set when its response is to say what was done with it. */
  debug?: { compression?: { originalTokens: number; compressedTokens: number; ratio: number; techniques: string[] } };
  /** What was set aside of the tenant's budget for it, and of which month's. */
  reserved?: { month: string; nanoUsd: number };
  createdAt: Date;
  expireAt: Date;
};

/** A batch of lines. It belongs to a provider's key; its tenant is the one whose key that is, or of its first line. */
export type BatchDocument = TenantDocument & {
  group: string;
  provider: string;
  providerKeyId: string;
  model: string;
  state: BatchState;
  jobId: string;
  /** Lines when it was closed. */
  size: number;
  /** When it is closed at the latest. */
  closeAt: Date;
  /** Set before it is handed in: whoever finds it later without an id looks for it at the provider. */
  submittedAt?: Date;
  /** From then until its id at the provider is known: one of a group at a time. */
  isSubmitting?: true;
  providerBatchId?: string;
  polls: number;
  createdAt: Date;
  expireAt: Date;
};

export const batchLineCollection = defineCollection<BatchLineDocument>({
  name: "batchLines",
  indexes: [
    { name: "batch", key: { batchId: 1, state: 1, _id: 1 } },
    { name: "waiting", key: { group: 1, state: 1, _id: 1 } },
    { name: "oldest", key: { state: 1, createdAt: 1 } },
    { name: "expire", key: { expireAt: 1 }, expireAfterSeconds: 0 },
  ],
});

export const batchCollection = defineCollection<BatchDocument>({
  name: "batches",
  indexes: [
    // One at a time collects the lines of a group.
    { name: "collecting", key: { group: 1 }, unique: true, partialFilterExpression: { state: "collecting" } },
    {
      name: "submitting",
      key: { group: 1, isSubmitting: 1 },
      unique: true,
      partialFilterExpression: { isSubmitting: true },
    },
    { name: "closing", key: { state: 1, closeAt: 1 } },
    { name: "handed_in", key: { group: 1, providerBatchId: 1 } },
    { name: "expire", key: { expireAt: 1 }, expireAfterSeconds: 0 },
  ],
});

/** Batches of a busy group are begun and closed while one looks; attempts at most. */
const MAX_ATTEMPTS = 20;

export type BatchStore = {
  /** Records a line. False: there is one of that id, which stays, unless it was cancelled. */
  insertLine(line: BatchLineDocument): Promise<boolean>;
  line(tenantId: string, jobId: string): Promise<BatchLineDocument | null>;
  /** Moves a line on from one state; false when it is in another. */
  moveLine(
    jobId: string,
    from: readonly LineState[],
    change: Partial<Pick<BatchLineDocument, "state" | "batchId" | "expiries">>,
  ): Promise<boolean>;
  /** Puts at most `limit` waiting lines of a group into a batch; how many it has then. */
  fill(batch: Pick<BatchDocument, "_id" | "group">, limit: number): Promise<number>;
  /** Lets the lines that are still in a batch wait for another one; how many there were. */
  giveBack(batchId: string): Promise<number>;
  countWaiting(group: string, limit: number): Promise<number>;
  /** Lines of a batch in a state, in the order of their ids. */
  lines(batchId: string, state: LineState, limit: number): Promise<BatchLineDocument[]>;
  countLines(batchId: string, states: readonly LineState[]): Promise<number>;
  /** Begins a batch unless its group has one that collects; the one that collects. */
  ensureCollecting(batch: BatchDocument): Promise<BatchDocument>;
  batch(batchId: string): Promise<BatchDocument | null>;
  changeBatch(
    batchId: string,
    from: readonly BatchState[],
    update: UpdateFilter<BatchDocument>,
  ): Promise<BatchDocument | null>;
  /** Marks a batch as being handed in; false while another one of its group is. */
  markSubmitting(batch: BatchDocument, size: number): Promise<boolean>;
  /** Batches that should have been closed, or handed to the queue, before this time. */
  overdue(before: Date, limit: number): Promise<BatchDocument[]>;
  /** Lines without a batch since before this time, the oldest first. */
  waitingSince(before: Date, limit: number): Promise<BatchLineDocument[]>;
  /** Lines that a worker which had lost its lease put into a batch that has ended since `since`. */
  strays(since: Date, limit: number): Promise<BatchLineDocument[]>;
  /** Which of these ids of the provider's are batches of ours already. */
  known(group: string, providerBatchIds: readonly string[]): Promise<Set<string>>;
};

export function makeBatchStore(db: Db): BatchStore {
  const lines = db.collection<BatchLineDocument>(batchLineCollection.name);
  const batches = db.collection<BatchDocument>(batchCollection.name);
  return {
    async insertLine(line) {
      if (await insertIfAbsent(lines, line)) return true;
      const { _id, ...fields } = line;
      const { modifiedCount } = await lines.replaceOne({ _id, state: "cancelled" }, fields);
      return modifiedCount === 1;
    },
    line: (tenantId, jobId) => lines.findOne(ofTenant(tenantId, { _id: jobId })),
    async moveLine(jobId, from, change) {
      const { matchedCount } = await lines.updateOne({ _id: jobId, state: { $in: [...from] } }, { $set: change });
      return matchedCount === 1;
    },
    async fill({ _id: batchId, group }, limit) {
      const has = await lines.countDocuments({ batchId, state: "batched" });
      const waiting = await lines
        .find({ group, state: "waiting" }, { projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(Math.max(0, limit - has))
        .toArray();
      const ids = waiting.map(({ _id }) => _id);
      await lines.updateMany({ _id: { $in: ids }, state: "waiting" }, { $set: { state: "batched", batchId } });
      return lines.countDocuments({ batchId, state: "batched" });
    },
    async giveBack(batchId) {
      const given = await lines.updateMany({ batchId, state: "batched" }, { $set: { state: "waiting", batchId: "" } });
      return given.modifiedCount;
    },
    countWaiting: (group, limit) => lines.countDocuments({ group, state: "waiting" }, { limit }),
    lines: (batchId, state, limit) => lines.find({ batchId, state }).sort({ _id: 1 }).limit(limit).toArray(),
    countLines: (batchId, states) => lines.countDocuments({ batchId, state: { $in: [...states] } }),
    async ensureCollecting(batch) {
      const collecting = { group: batch.group, state: "collecting" as const };
      for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
        const found = await batches.findOne(collecting);
        if (found) return found;
        // Else another process was first, and may have closed its batch by the time that we look.
        if (await insertIfAbsent(batches, batch)) return batch;
      }
      return insertOrFind(batches, batch, collecting);
    },
    batch: (batchId) => batches.findOne({ _id: batchId }),
    changeBatch: (batchId, from, update) =>
      batches.findOneAndUpdate({ _id: batchId, state: { $in: [...from] } }, update, { returnDocument: "after" }),
    async markSubmitting({ _id }, size) {
      try {
        const { matchedCount } = await batches.updateOne(
          { _id, state: "closed", submittedAt: { $exists: false } },
          { $set: { submittedAt: new Date(), size, isSubmitting: true } },
        );
        return matchedCount === 1;
      } catch (error) {
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },
    overdue: (before, limit) =>
      batches
        .find({ state: { $in: ["collecting", "closed"] }, closeAt: { $lte: before } })
        .sort({ closeAt: 1 })
        .limit(limit)
        .toArray(),
    waitingSince: (before, limit) =>
      lines
        .find({ state: { $in: ["accepted", "waiting"] }, createdAt: { $lte: before } })
        .sort({ createdAt: 1 })
        .limit(limit)
        .toArray(),
    async strays(since, limit) {
      const ended = await batches
        .find({ state: "ended", closeAt: { $gte: since } }, { projection: { _id: 1 } })
        .sort({ closeAt: -1 })
        .limit(limit)
        .toArray();
      const ids = ended.map(({ _id }) => _id);
      return ids.length === 0
        ? []
        : lines
            .find({ batchId: { $in: ids }, state: "batched" })
            .limit(limit)
            .toArray();
    },
    async known(group, providerBatchIds) {
      const found = await batches
        .find({ group, providerBatchId: { $in: [...providerBatchIds] } }, { projection: { providerBatchId: 1 } })
        .toArray();
      return new Set(found.flatMap(({ providerBatchId }) => providerBatchId ?? []));
    },
  };
}
