import { randomBytes } from "node:crypto";
import { AppError } from "../lib/errors.ts";
import { bytesOf, type DataKeyRecord, type ProviderKeyStore } from "../store/provider-key-store.ts";
import { KEY_BYTES } from "./envelope.ts";
import type { MasterKeys } from "./master-keys.ts";

export type DataKeys = ReturnType<typeof makeDataKeys>;

type DataKeysDeps = {
  store: Pick<ProviderKeyStore, "findDataKey" | "ensureDataKey" | "listDataKeysNotBy" | "rewrapDataKey">;
  /** Null: secrets can be neither stored nor read. */
  masterKeys: MasterKeys | null;
};

const REWRAP_PAGE = 100;

/** The key of each tenant under which its secrets are sealed: made at the first use, stored wrapped. */
export function makeDataKeys({ store, masterKeys }: DataKeysDeps) {
  const unwrap = ({ tenantId, masterKeyId, wrapped }: DataKeyRecord) =>
    masterKeys?.unwrap(tenantId, { masterKeyId, wrapped: bytesOf(wrapped) }) ?? null;
  return {
    /** Null when there is none, or it cannot be read. */
    async find(tenantId: string): Promise<Buffer | null> {
      const stored = await store.findDataKey(tenantId);
      return stored && unwrap(stored);
    },
    /** Makes one where there is none. @throws AppError `unavailable` where no master key is set; `provider_key_unreadable`. */
    async ensure(tenantId: string): Promise<Buffer> {
      if (masterKeys === null) {
        throw new AppError("unavailable", "Keys cannot be stored: the operator has not set MASTER_KEY.");
      }
      const stored =
        (await store.findDataKey(tenantId)) ??
        (await store.ensureDataKey(tenantId, masterKeys.wrap(tenantId, randomBytes(KEY_BYTES))));
      const dataKey = unwrap(stored);
      if (dataKey !== null) return dataKey;
      const message = "Your data key cannot be read with the master key of this service.";
      throw new AppError("provider_key_unreadable", message);
    },
    /** Wraps those of all tenants with the current master key; returns how many were, and how many could not be read. */
    async rewrapAll() {
      const counts = { rewrapped: 0, unreadable: 0 };
      if (masterKeys === null) return counts;
      let afterId: string | undefined;
      for (;;) {
        const page = await store.listDataKeysNotBy(masterKeys.currentId, { limit: REWRAP_PAGE, afterId });
        for (const stored of page) {
          const dataKey = unwrap(stored);
          if (dataKey === null) counts.unreadable += 1;
          else if (await store.rewrapDataKey(stored, masterKeys.wrap(stored.tenantId, dataKey))) counts.rewrapped += 1;
        }
        afterId = page.at(-1)?._id;
        if (afterId === undefined) return counts;
      }
    },
  };
}
