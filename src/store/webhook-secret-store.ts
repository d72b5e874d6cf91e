import { Binary, type Db } from "mongodb";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";

/** What a tenant's webhooks are signed with, encrypted under the tenant's data key. */
export type WebhookSecretDocument = TenantDocument & {
  sealed: Binary;
  createdAt: Date;
  /** The one before, with which webhooks are signed as well until then. */
  previous?: { sealed: Binary; until: Date };
};

export const webhookSecretCollection = defineCollection<WebhookSecretDocument>({ name: "webhookSecrets", indexes: [] });

export type WebhookSecretStore = {
  find(tenantId: string): Promise<WebhookSecretDocument | null>;
  /** Keeps a tenant's first secret unless it has one; answers the one that is kept. */
  ensure(tenantId: string, sealed: Buffer): Promise<WebhookSecretDocument>;
  /** Puts a new secret in the place of exactly this one, which stays valid until `until`; null when it has changed. */
  replace(there: WebhookSecretDocument, made: { sealed: Buffer; until: Date }): Promise<WebhookSecretDocument | null>;
};

export function makeWebhookSecretStore(db: Db): WebhookSecretStore {
  const secrets = db.collection<WebhookSecretDocument>(webhookSecretCollection.name);
  return {
    find: (tenantId) => secrets.findOne(ofTenant(tenantId, { _id: tenantId })),
    async ensure(tenantId, sealed) {
      const kept = await secrets.findOneAndUpdate(
        ofTenant(tenantId, { _id: tenantId }),
        { $setOnInsert: { sealed: new Binary(sealed), createdAt: new Date() } },
        { upsert: true, returnDocument: "after" },
      );
      if (kept === null) throw new TypeError("an upsert answered no document");
      return kept;
    },
    replace: (there, { sealed, until }) =>
      secrets.findOneAndUpdate(
        ofTenant(there.tenantId, { _id: there._id, createdAt: there.createdAt, sealed: there.sealed }),
        {
          $set: { sealed: new Binary(sealed), createdAt: new Date(), previous: { sealed: there.sealed, until } },
        },
        { returnDocument: "after" },
      ),
  };
}
