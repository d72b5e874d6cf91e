import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { makeRecords, makeWorkRecords, type StoredWork } from "./records.ts";
import { insertOrFind } from "./writes.ts";

/** Something that happened, told by a caller or by a source of events. */
export type EventRecord = StoredWork & {
  name: string;
  /** A hash of its sender's id and what that is of: each is taken once while the record is kept. */
  key: string;
  /** The sender's own id, type and source of it. */
  senderId?: string;
  type?: string;
  sourceId?: string;
  /** JSON, until it was handed to all that it is for. */
  data?: string;
  expireAt: Date;
};

/** What is found of one that has not ended. */
export type OpenEvent = Pick<EventRecord, "_id" | "tenantId" | "jobId">;

export const eventCollection = defineCollection<EventRecord>({
  name: "events",
  indexes: [
    { key: { tenantId: 1, key: 1 }, name: "key", unique: true },
    { key: { updatedAt: 1 }, name: "open", partialFilterExpression: { isOpen: true } },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

export function makeEventStore(db: Db) {
  const events = db.collection<EventRecord>(eventCollection.name);
  const records = makeWorkRecords(events, { watched: { isOpen: true }, fields: ["tenantId", "jobId"] });
  return {
    ...records,
    /** Adds an event unless its key was taken; returns the one that is there then. */
    take: (event: EventRecord): Promise<EventRecord> =>
      insertOrFind(events, event, ofTenant(event.tenantId, { key: event.key })),
    /** It was handed to all that it is for: its data goes, its key stays. */
    finish: (tenantId: string, eventId: string): Promise<boolean> =>
      records.update(tenantId, eventId, { $unset: { isOpen: "", data: "" } }),
  };
}

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
