import type { Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findDue, findPage, type Page, type PageQuery } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne, updateIf } from "./writes.ts";

export const deliveryStates = ["pending", "delivered", "failed"] as const;

/** One attempt to send a message: what the receiver answered, or why it did not. */
export type DeliveryAttempt = { at: Date; status?: number; error?: ErrorView };

/** A message to a webhook. Its id is made of webhook, event and what that is about: so there is one. */
export type DeliveryRecord = TenantOwned & {
  webhookId: string;
  owner: string;
  url: string;
  type: string;
  /** JSON of what is sent. */
  body: string;
  status: (typeof deliveryStates)[number];
  attempts: number;
  /** The last of them. */
  log: DeliveryAttempt[];
  createdAt: Date;
  /** Since when it is to be sent: a replay begins anew. */
  since: Date;
  deliveredAt?: Date;
  /** While it is pending: when it is sent next; while it is under way, when that counts as lost. */
  nextAt?: Date;
  expireAt: Date;
};

export const deliveryCollection = defineCollection<DeliveryRecord>({
  name: "deliveries",
  indexes: [
    { key: { tenantId: 1, webhookId: 1, _id: -1 }, name: "webhook_newest" },
    {
      key: { tenantId: 1, webhookId: 1, nextAt: 1 },
      name: "webhook_pending",
      partialFilterExpression: { status: "pending" },
    },
    { key: { nextAt: 1 }, name: "due", sparse: true },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

/** Attempts that are kept. */
const KEPT_ATTEMPTS = 10;

export function makeDeliveryStore(db: Db) {
  const deliveries = db.collection<DeliveryRecord>(deliveryCollection.name);
  const { ensure, get } = makeRecords(deliveries);
  const logged = (attempt: DeliveryAttempt) => ({ log: { $each: [attempt], $slice: -KEPT_ATTEMPTS } });
  return {
    ensure,
    get,
    list: (tenantId: string, webhookId: string, page: PageQuery): Promise<Page<DeliveryRecord>> =>
      findPage(deliveries, { tenantId, page, filter: { webhookId } }),
    /** How many of a webhook are pending; counts no further than `limit`. */
    countPending: (tenantId: string, webhookId: string, limit: number) =>
      deliveries.countDocuments(ofTenant(tenantId, { webhookId, status: "pending" as const }), { limit }),
    /** Those to be sent, of all owners but these, the most overdue first. */
    due: (now: Date, limit: number, exceptOwners: readonly string[]) =>
      findDue(deliveries, now, { by: "nextAt", limit, except: { owner: exceptOwners } }),
    /** Puts off exactly this state of one; false when another process has it by now. */
    putOff: (
      { tenantId, _id, nextAt }: DeliveryRecord,
      next: { nextAt: Date; attempts?: number },
      attempt?: DeliveryAttempt,
    ): Promise<boolean> =>
      updateIf(deliveries, ofTenant(tenantId, { _id, ...(nextAt ? { nextAt } : {}) }), {
        $set: next,
        ...(attempt ? { $push: logged(attempt) } : {}),
      }),
    /** Ends one that is pending. */
    async end({ tenantId, _id }: TenantOwned, status: "delivered" | "failed", attempt: DeliveryAttempt): Promise<void> {
      await deliveries.updateOne(ofTenant(tenantId, { _id, status: "pending" as const }), {
        $set: { status, ...(status === "delivered" ? { deliveredAt: attempt.at } : {}) },
        $unset: { nextAt: "" },
        $push: logged(attempt),
      });
    },
    /** Has one sent again, to the address that its webhook has now; null when it is not there, or is pending. */
    replay: (tenantId: string, { webhookId, id, url }: { webhookId: string; id: string; url: string }) =>
      changeOne(deliveries, ofTenant(tenantId, { _id: id, webhookId, status: { $ne: "pending" as const } }), {
        $set: { status: "pending", url, attempts: 0, nextAt: new Date(), since: new Date() },
      }),
  };
}
