import type { Db, UpdateFilter } from "mongodb";
import type { ReservedAmount } from "./budget-store.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import type { CallOrigin } from "./completion-store.ts";
import { findFirst } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne, insertIfAbsent, insertOrFind, unlessDuplicate, updateIf } from "./writes.ts";

/**
 * A batch *item* is one chat that a batch is to answer: accepted until its job is on record, then waiting until a batch
 * takes it. A *batch* collects items, is closed when it is full or its time has come, is submitted to the provider, and has
 * ended when each of its items has.
 */
const batchItemStates = ["accepted", "waiting", "batched", "done", "cancelled"] as const;
type BatchItemState = (typeof batchItemStates)[number];

const batchStates = ["collecting", "closed", "submitted", "ended"] as const;
type BatchState = (typeof batchStates)[number];

/** One request that waits for a batch or is in one. It has the id of its caller's job. */
export type BatchItemRecord = TenantOwned & {
  keyId: string;
  surface: string;
  origin?: CallOrigin;
  requestId?: string;
  /** Items of a group share a provider, a key and a model, and so can share a batch. */
  group: string;
  provider: string;
  providerKeyId: string;
  model: string;
  requestedModel: string;
  /** Why this model was chosen; the answer shows it. */
  reason: string;
  /** As the gateway asks a provider for it; the store looks at nothing in it. */
  request: object;
  /** The body of a request in the provider's own wire format, which goes to it in the place of `request`, and how it goes. */
  raw?: { path: string; body: string; headers: Record<string, string> };
  /** Set where the answer is to be a message of the Messages API: what of its request is not used. */
  message?: { ignored: string[] };
  /** Set where it is to be a response of the Responses API: its body without the input, as JSON, and what of that is not used. */
  response?: { body: string; ignored: string[] };
  /** Characters of the request as JSON; an earlier release noted none. */
  requestSize?: number;
  state: BatchItemState;
  batchId?: string;
  /** How many batches let it expire. */
  expiries: number;
  logId: string;
  /** Set when its response is to say what was done with it. */
  debug?: { compression?: { originalTokens: number; compressedTokens: number; ratio: number; techniques: string[] } };
  /** What was set aside for it, of which budgets and months; an earlier release noted one of the tenant's own. */
  reserved?: ReservedAmount[] | Omit<ReservedAmount, "tenantId">;
  createdAt: Date;
  expireAt: Date;
};

/** The limits of a batch. Its first item is taken whatever its size. */
type BatchRoom = { items: number; characters: number };

/** A batch of items. It belongs to a provider's key. Its tenant is the owner of the key, or else of the first item. */
export type BatchRecord = TenantOwned & {
  group: string;
  provider: string;
  providerKeyId: string;
  model: string;
  state: BatchState;
  jobId: string;
  /** Number of items at the time it was closed. */
  size: number;
  /** When it is closed at the latest; from then on, when the sweep last looked at it, or is to look again, or when it ended. */
  closeAt: Date;
  /** Set before it is submitted: a worker that finds it later without a provider id looks for it at the provider. */
  submittedAt?: Date;
  /** True from then until its id at the provider is known. A group has one such batch at a time. */
  isSubmitting?: true;
  providerBatchId?: string;
  polls: number;
  createdAt: Date;
  expireAt: Date;
};

export const batchItemCollection = defineCollection<BatchItemRecord>({
  name: "batchLines",
  indexes: [
    { name: "batch", key: { batchId: 1, state: 1, _id: 1 } },
    { name: "waiting", key: { group: 1, state: 1, _id: 1 } },
    { name: "oldest", key: { state: 1, createdAt: 1 } },
    { name: "expire", key: { expireAt: 1 }, expireAfterSeconds: 0 },
  ],
});

export const batchCollection = defineCollection<BatchRecord>({
  name: "batches",
  indexes: [
    // One batch at a time collects the items of a group.
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

/** Maximum attempts to find the collecting batch of a group: in a busy group it may be closed during the look. */
const MAX_ATTEMPTS = 20;

export function makeBatchStore(db: Db) {
  return { ...makeItems(db), ...makeBatches(db) };
}

function makeItems(db: Db) {
  const items = db.collection<BatchItemRecord>(batchItemCollection.name);
  return {
    item: makeRecords(items).get,
    /** Records an item. Returns false if there is an item with this id that was not cancelled; it stays. */
    async insertItem(item: BatchItemRecord): Promise<boolean> {
      if (await insertIfAbsent(items, item)) return true;
      const { _id, ...fields } = item;
      const { modifiedCount } = await items.replaceOne({ _id, state: "cancelled" }, fields);
      return modifiedCount === 1;
    },
    /** Moves an item on from a state. Returns false if it is in another state. */
    moveItem: (
      jobId: string,
      from: readonly BatchItemState[],
      change: Partial<Pick<BatchItemRecord, "state" | "batchId" | "expiries">>,
    ) => updateIf(items, { _id: jobId, state: { $in: [...from] } }, { $set: change }),
    /** Puts waiting items of a group into a batch, as many as it has room for; how many it has then. */
    async fill({ _id: batchId, group }: Pick<BatchRecord, "_id" | "group">, most: BatchRoom): Promise<number> {
      const fields = ["_id", "requestSize"];
      const has = await findFirst(items, { batchId, state: "batched" }, { by: "_id", limit: most.items, fields });
      if (has.length >= most.items) return has.length; // to the store, a limit of 0 is none
      const room = { by: "_id", limit: most.items - has.length, fields };
      const waiting = await findFirst(items, { group, state: "waiting" }, room);
      let size = has.reduce((sum, { requestSize = 0 }) => sum + requestSize, 0);
      const ids: string[] = [];
      for (const { _id, requestSize = 0 } of waiting) {
        size += requestSize;
        if (size > most.characters && has.length + ids.length > 0) break;
        ids.push(_id);
      }
      await items.updateMany({ _id: { $in: ids }, state: "waiting" }, { $set: { state: "batched", batchId } });
      return items.countDocuments({ batchId, state: "batched" });
    },
    /** Returns the items left in a batch to the waiting ones. Resolves with their number. */
    async giveBack(batchId: string): Promise<number> {
      const given = await items.updateMany({ batchId, state: "batched" }, { $set: { state: "waiting", batchId: "" } });
      return given.modifiedCount;
    },
    countWaiting: (group: string, limit: number) => items.countDocuments({ group, state: "waiting" }, { limit }),
    /** Items of a batch in a state, in the order of their ids. */
    items: (batchId: string, state: BatchItemState, limit: number) =>
      findFirst(items, { batchId, state }, { by: "_id", limit }),
    /** Removes the tenant's items that have ended. */
    async removeEnded(tenantId: string, jobIds: readonly string[]): Promise<void> {
      const ended = { _id: { $in: [...jobIds] }, state: { $in: ["done" as const, "cancelled" as const] } };
      await items.deleteMany(ofTenant(tenantId, ended));
    },
    /** Items that have waited for a batch since before this time, oldest first. */
    waitingSince(before: Date, limit: number) {
      const filter = { state: { $in: ["accepted" as const, "waiting" as const] }, createdAt: { $lte: before } };
      return findFirst(items, filter, { by: "createdAt", limit });
    },
  };
}

function makeBatches(db: Db) {
  const batches = db.collection<BatchRecord>(batchCollection.name);
  const items = db.collection<BatchItemRecord>(batchItemCollection.name);
  return {
    /** Starts a batch unless its group has one that collects. Resolves with the batch that collects. */
    async ensureCollecting(batch: BatchRecord): Promise<BatchRecord> {
      const collecting = { group: batch.group, state: "collecting" as const };
      for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
        const found = await batches.findOne(collecting);
        if (found) return found;
        // Else another process was first, and may have closed its batch by the time that we look.
        if (await insertIfAbsent(batches, batch)) return batch;
      }
      return insertOrFind(batches, batch, collecting);
    },
    batch: (batchId: string): Promise<BatchRecord | null> => batches.findOne({ _id: batchId }),
    /** Changes a batch if it is in one of these states, else returns null. */
    changeBatch: (batchId: string, from: readonly BatchState[], update: UpdateFilter<BatchRecord>) =>
      changeOne(batches, { _id: batchId, state: { $in: [...from] } }, update),
    /** Marks a batch as being submitted. Returns false while another batch of its group is being submitted. */
    async markSubmitting({ _id }: BatchRecord, size: number): Promise<boolean> {
      const filter = { _id, state: "closed" as const, submittedAt: { $exists: false } };
      const update = { $set: { submittedAt: new Date(), size, isSubmitting: true as const } };
      return (await unlessDuplicate(batches.updateOne(filter, update)))?.matchedCount === 1;
    },
    /** Ends a batch, which then cannot be submitted. Returns false if it is being submitted or has ended. */
    endUnsubmitted(batchId: string): Promise<boolean> {
      const filter = { _id: batchId, state: "closed" as const, submittedAt: { $exists: false } };
      return updateIf(batches, filter, { $set: { state: "ended", closeAt: new Date() } });
    },
    /** Batches in one of these states that were to be closed or looked at before this time, the oldest first. */
    overdue(states: readonly BatchState[], before: Date, limit: number) {
      const filter = { state: { $in: [...states] }, closeAt: { $lte: before } };
      return findFirst(batches, filter, { by: "closeAt", limit });
    },
    /** Items that a worker which had lost its lease put into a batch that has ended since `since`. */
    async strays(since: Date, limit: number): Promise<BatchItemRecord[]> {
      const ended = await batches
        .find({ state: "ended", closeAt: { $gte: since } }, { projection: { _id: 1 } })
        .sort({ closeAt: -1 })
        .limit(limit)
        .toArray();
      if (ended.length === 0) return [];
      const batchIds = ended.map(({ _id }) => _id);
      return items
        .find({ batchId: { $in: batchIds }, state: "batched" })
        .limit(limit)
        .toArray();
    },
    /** Returns which of these provider ids belong to our batches already. */
    async known(group: string, providerBatchIds: readonly string[]): Promise<Set<string>> {
      const found = await batches
        .find({ group, providerBatchId: { $in: [...providerBatchIds] } }, { projection: { providerBatchId: 1 } })
        .toArray();
      return new Set(found.flatMap(({ providerBatchId }) => providerBatchId ?? []));
    },
  };
}
