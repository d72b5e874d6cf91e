import { Binary, type Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { makeRecords, makeVersionedRecords, type VersionedRecord } from "./records.ts";
import { changeOne } from "./writes.ts";

/** An address that is told of what happens in a tenant. */
export type WebhookRecord = VersionedRecord & {
  url: string;
  /** The types of its messages, and of each its family, as `job`. */
  events: string[];
  families: string[];
  description?: string;
  isEnabled: boolean;
  /** The tenant whose turns its messages take. */
  owner: string;
  /** When its maker's key ends: then nothing is sent any more. */
  endsAt?: Date;
};

/** What a replacement changes. */
export type WebhookChange = Omit<WebhookRecord, keyof VersionedRecord>;

export const webhookCollection = defineCollection<WebhookRecord>({
  name: "webhooks",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { families: 1, tenantId: 1, _id: 1 }, name: "family" },
  ],
});

export type WebhookStore = ReturnType<typeof makeWebhookStore>;

export function makeWebhookStore(db: Db) {
  const webhooks = db.collection<WebhookRecord>(webhookCollection.name);
  return {
    ...makeVersionedRecords<WebhookRecord, WebhookChange>(webhooks, ["description", "endsAt"]),
    list: (tenantId: string, page: PageQuery): Promise<Page<WebhookRecord>> => findPage(webhooks, { tenantId, page }),
    /** Those of a tenant that are told of a family of events. */
    ofFamily: (tenantId: string, family: string, limit: number): Promise<WebhookRecord[]> =>
      webhooks
        .find(ofTenant(tenantId, { families: family, isEnabled: true }))
        .limit(limit)
        .toArray(),
    /** Tenants, after one of them, that have some of a family. */
    async tenantsOf(family: string, { after, limit }: { after: string; limit: number }): Promise<string[]> {
      const found = await webhooks
        .find({ families: family, tenantId: { $gt: after }, isEnabled: true })
        .project<{ tenantId: string }>({ tenantId: 1 })
        .sort({ tenantId: 1 })
        .limit(limit)
        .toArray();
      return found.map(({ tenantId }) => tenantId);
    },
  };
}

/** The secret that signs a tenant's webhooks, encrypted under the tenant's data key. */
export type WebhookSecretRecord = TenantOwned & {
  sealed: Binary;
  createdAt: Date;
  /** The previous secret, which also signs webhooks until then. */
  previous?: { sealed: Binary; until: Date };
};

export const webhookSecretCollection = defineCollection<WebhookSecretRecord>({ name: "webhookSecrets", indexes: [] });

export type WebhookSecretStore = ReturnType<typeof makeWebhookSecretStore>;

export function makeWebhookSecretStore(db: Db) {
  const secrets = db.collection<WebhookSecretRecord>(webhookSecretCollection.name);
  const { get, ensure } = makeRecords(secrets);
  return {
    find: (tenantId: string) => get(tenantId, tenantId),
    /** Stores a tenant's first secret unless it has one. Returns the stored one. */
    ensure: (tenantId: string, sealed: Buffer) =>
      ensure({ _id: tenantId, tenantId, sealed: new Binary(sealed), createdAt: new Date() }),
    /** Puts a new secret in the place of exactly this one, which stays valid until `until`; null when it has changed. */
    replace({ tenantId, _id, createdAt, sealed }: WebhookSecretRecord, made: { sealed: Buffer; until: Date }) {
      const previous = { sealed, until: made.until };
      const next = { sealed: new Binary(made.sealed), createdAt: new Date(), previous };
      return changeOne(secrets, ofTenant(tenantId, { _id, createdAt, sealed }), { $set: next });
    },
  };
}
