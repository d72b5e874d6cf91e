import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { makeVersionedRecords, type VersionedRecord } from "./records.ts";
import type { StoredMaker } from "./schedule-store.ts";
import { updateIf } from "./writes.ts";

/** What an event of a name starts. */
export type TriggerRecord = VersionedRecord & {
  event: string;
  /** CEL over `event`: whether it starts anything, and what the target gets. */
  when?: string;
  inputFrom?: string;
  /** JSON: names in it may be ones that the store has a meaning for. */
  target: string;
  isEnabled: boolean;
  /** Why it was disabled, if nobody did it. */
  disabledBecause?: string;
  maker: StoredMaker;
};

/** What a replacement changes. */
export type TriggerChange = Omit<TriggerRecord, keyof VersionedRecord>;

export const triggerCollection = defineCollection<TriggerRecord>({
  name: "triggers",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { tenantId: 1, event: 1, _id: 1 }, name: "event" },
  ],
});

export function makeTriggerStore(db: Db) {
  const triggers = db.collection<TriggerRecord>(triggerCollection.name);
  return {
    ...makeVersionedRecords<TriggerRecord, TriggerChange>(triggers, ["when", "inputFrom", "disabledBecause"]),
    list: (tenantId: string, page: PageQuery): Promise<Page<TriggerRecord>> => findPage(triggers, { tenantId, page }),
    /** Those of an event, in the order of their ids, after one of them. */
    ofEvent: (tenantId: string, event: string, { after, limit }: { after: string; limit: number }) =>
      triggers
        .find(ofTenant(tenantId, { event, isEnabled: true, _id: { $gt: after } }))
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Disables this version of one, for a reason that it says. */
    disable: ({ tenantId, _id, version }: TriggerRecord, disabledBecause: string): Promise<boolean> =>
      updateIf(triggers, ofTenant(tenantId, { _id, version }), {
        $set: { isEnabled: false, disabledBecause, updatedAt: new Date() },
      }),
  };
}
