import { randomBytes } from "node:crypto";
import { AppError } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import { bytesOf } from "../store/provider-key-store.ts";
import type { WebhookSecretRecord, WebhookSecretStore } from "../store/webhook-store.ts";
import type { DataKeys } from "../tenancy/data-keys.ts";
import { open, seal } from "../tenancy/envelope.ts";

/** Bytes of a secret; the specification asks for 24 to 64. */
const SECRET_BYTES = 32;
/** How long webhooks also carry a signature by the previous secret, so that receivers can switch, in ms. */
const OVERLAP_MS = 86_400_000;

/** The secrets that a tenant's webhooks are signed with, the current one first, as `whsec_…`. */
export type WebhookSecrets = { current: string; createdAt: Date; previous?: { secret: string; until: Date } };

/** Random secrets, one a tenant, stored sealed like providers' keys; kept in memory for a few seconds. */
export function makeWebhookSecrets(deps: { store: WebhookSecretStore; dataKeys: DataKeys }) {
  const { store, dataKeys } = deps;
  const unseal = (dataKey: Buffer, tenantId: string, sealed: WebhookSecretRecord["sealed"]) => {
    const plain = open(dataKey, bytesOf(sealed), contextOf(tenantId));
    if (plain) return `whsec_${plain.toString("base64")}`;
    throw new AppError("provider_key_unreadable", "The secret of your webhooks cannot be read; make a new one.");
  };
  const toSecrets = (dataKey: Buffer, { tenantId, sealed, createdAt, previous }: WebhookSecretRecord) => {
    const current = unseal(dataKey, tenantId, sealed);
    if (previous === undefined || previous.until.getTime() <= Date.now()) return { current, createdAt };
    const { until } = previous;
    return { current, createdAt, previous: { secret: unseal(dataKey, tenantId, previous.sealed), until } };
  };
  const make = (dataKey: Buffer, tenantId: string) => seal(dataKey, randomBytes(SECRET_BYTES), contextOf(tenantId));
  const load = async (tenantId: string) => {
    const dataKey = await dataKeys.ensure(tenantId);
    const stored = (await store.find(tenantId)) ?? (await store.ensure(tenantId, make(dataKey, tenantId)));
    return { dataKey, stored };
  };
  const cache = makeStaleWhileRevalidate<WebhookSecrets>(async (tenantId) => {
    const { dataKey, stored } = await load(tenantId);
    return toSecrets(dataKey, stored);
  });
  return {
    /** Makes the tenant's first one where there is none. @throws AppError `unavailable`, `provider_key_unreadable`. */
    find: async (tenantId: string) => cache.find(tenantId),
    /** Replaces the current secret. @throws AppError as `find`; `wrong_state` when others replace it at the same time. */
    async rotate(tenantId: string): Promise<WebhookSecrets> {
      const { dataKey, stored } = await load(tenantId);
      const until = new Date(Date.now() + OVERLAP_MS);
      const replaced = await store.replace(stored, { sealed: make(dataKey, tenantId), until });
      cache.forget(tenantId);
      if (replaced) return toSecrets(dataKey, replaced);
      throw new AppError("wrong_state", "Others are replacing the secret at the same time.");
    },
  };
}

const contextOf = (tenantId: string) => `webhook-secret:${tenantId}`;
