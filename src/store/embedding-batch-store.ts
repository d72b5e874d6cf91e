import type { Db } from "mongodb";
import type { ReservedAmount } from "./budget-store.ts";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { findFirst } from "./page.ts";
import { insertIfAbsent, updateIf } from "./writes.ts";

/**
 * A batch of embeddings at a provider. Its owner, a piece of durable work, waits for an `open` one; one that is `abandoned` is
 * cancelled by the sweep, which charges what was embedded by then.
 */
export type EmbeddingBatchDocument = TenantDocument & {
  /** The record of the work that it was submitted for, and its number there, from 1. */
  owner: string;
  number: number;
  /** Where the owner continues with the next one; the owner's own words. */
  mark: string;
  keyId: string;
  surface: string;
  requestedModel: string;
  model: string;
  provider: string;
  providerKeyId: string;
  state: "open" | "abandoned" | "ended";
  /** Set when it ended without results. */
  hasFailed?: true;
  /** Absent: a process died, or lost the response, while it submitted it. */
  providerBatchId?: string;
  /** The estimate of its texts. */
  inputTokens: number;
  /** Times that it was looked at. */
  polls: number;
  /** The record of the ledger that it is charged by. */
  logId: string;
  /** What was set aside for it, of which budgets. */
  reserved?: ReservedAmount[];
  createdAt: Date;
  updatedAt: Date;
  expireAt: Date;
};

export const embeddingBatchCollection = defineCollection<EmbeddingBatchDocument>({
  name: "embeddingBatches",
  indexes: [
    { name: "owner", key: { tenantId: 1, owner: 1, number: 1 }, unique: true },
    { name: "abandoned", key: { updatedAt: 1 }, partialFilterExpression: { state: "abandoned" } },
    { name: "expire", key: { expireAt: 1 }, expireAfterSeconds: 0 },
  ],
});

export function makeEmbeddingBatchStore(db: Db) {
  const batches = db.collection<EmbeddingBatchDocument>(embeddingBatchCollection.name);
  const change = ({ _id, tenantId }: EmbeddingBatchDocument, set: Partial<EmbeddingBatchDocument>) =>
    updateIf(batches, ofTenant(tenantId, { _id, state: { $in: ["open" as const, "abandoned" as const] } }), {
      $set: { ...set, updatedAt: new Date() },
    });
  return {
    /** False when the owner has one of this number. */
    insert: (batch: EmbeddingBatchDocument) => insertIfAbsent(batches, batch),
    /** The owner's last one; null before the first. */
    last: (tenantId: string, owner: string): Promise<EmbeddingBatchDocument | null> =>
      batches.findOne(ofTenant(tenantId, { owner }), { sort: { number: -1 } }),
    /** The owner's open ones, at most `limit`, in the order of their numbers. */
    open: (tenantId: string, owner: string, limit: number): Promise<EmbeddingBatchDocument[]> =>
      findFirst(batches, ofTenant(tenantId, { owner, state: "open" as const }), { by: "number", limit }),
    /** Changes one that has not ended; false when it has. */
    change,
    /** Gives up the open ones of an owner. */
    async abandon(tenantId: string, owner: string): Promise<void> {
      const open = ofTenant(tenantId, { owner, state: "open" as const });
      await batches.updateMany(open, { $set: { state: "abandoned" as const, updatedAt: new Date(0) } }); // looked at first
    },
    /** Of all tenants: those that were given up and not looked at since `before`, the longest untouched first. */
    abandoned: (before: Date, limit: number): Promise<EmbeddingBatchDocument[]> =>
      findFirst(batches, { state: "abandoned", updatedAt: { $lt: before } }, { by: "updatedAt", limit }),
  };
}
