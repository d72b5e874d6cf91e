import { Binary, type Db } from "mongodb";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { makeRecords } from "./records.ts";

/** What a tenant's webhooks are signed with, encrypted under the tenant's data key. */
export type WebhookSecretDocument = TenantDocument & {
  sealed: Binary;
  createdAt: Date;
  /** The one before, with which webhooks are signed as well until then. */
  previous?: { sealed: Binary; until: Date };
};

export const webhookSecretCollection = defineCollection<WebhookSecretDocument>({ name: "webhookSecrets", indexes: [] });

export type WebhookSecretStore = ReturnType<typeof makeWebhookSecretStore>;

export function makeWebhookSecretStore(db: Db) {
  const secrets = db.collection<WebhookSecretDocument>(webhookSecretCollection.name);
  const { get, ensure } = makeRecords(secrets);
  return {
    find: (tenantId: string) => get(tenantId, tenantId),
    /** Keeps a tenant's first secret unless it has one; returns the one that is kept. */
    ensure: (tenantId: string, sealed: Buffer) =>
      ensure({ _id: tenantId, tenantId, sealed: new Binary(sealed), createdAt: new Date() }),
    /** Puts a new secret in the place of exactly this one, which stays valid until `until`; null when it has changed. */
    replace: (
      there: WebhookSecretDocument,
      { sealed, until }: { sealed: Buffer; until: Date },
    ): Promise<WebhookSecretDocument | null> =>
      secrets.findOneAndUpdate(
        ofTenant(there.tenantId, { _id: there._id, createdAt: there.createdAt, sealed: there.sealed }),
        { $set: { sealed: new Binary(sealed), createdAt: new Date(), previous: { sealed: there.sealed, until } } },
        { returnDocument: "after" },
      ),
  };
}
