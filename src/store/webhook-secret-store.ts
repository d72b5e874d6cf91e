import { Binary, type Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { makeRecords } from "./records.ts";
import { changeOne } from "./writes.ts";

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
