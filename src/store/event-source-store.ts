import type { Db } from "mongodb";
import { defineCollection, type TenantOwned } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { makeRecords } from "./records.ts";

/** How a source signs its requests. */
export const sourceKinds = ["standard-webhooks", "github", "slack"] as const;
export type SourceKind = (typeof sourceKinds)[number];

/** A server elsewhere whose signed requests are events. */
export type EventSourceRecord = TenantOwned & {
  name: string;
  kind: SourceKind;
  /** The name of its events. */
  event: string;
  /** What it signs with, encrypted under the tenant's data key, in base64. */
  sealed: string;
  createdBy: string;
  createdAt: Date;
};

export const eventSourceCollection = defineCollection<EventSourceRecord>({
  name: "eventSources",
  indexes: [{ key: { tenantId: 1, _id: -1 }, name: "tenant_newest" }],
});

export function makeEventSourceStore(db: Db) {
  const sources = db.collection<EventSourceRecord>(eventSourceCollection.name);
  return {
    ...makeRecords(sources),
    list: (tenantId: string, page: PageQuery): Promise<Page<EventSourceRecord>> =>
      findPage(sources, { tenantId, page }),
    /** One of whatever tenant: its id in the path of a signed request is how the tenant is found. */
    findById: (sourceId: string): Promise<EventSourceRecord | null> => sources.findOne({ _id: sourceId }),
  };
}
