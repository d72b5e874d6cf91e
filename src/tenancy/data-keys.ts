import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { MASTER_KEY_BYTES, type MasterKey, parseMasterKeys } from "../config/master-key.ts";
import { AppError } from "../lib/errors.ts";
import { keepSecret } from "../lib/private-files.ts";
import { bytesOf, type DataKeyRecord, type ProviderKeyStore } from "../store/provider-key-store.ts";
import { KEY_BYTES, open, seal } from "./envelope.ts";

/** A data key as it is stored: sealed by the master key `masterKeyId`. */
type WrappedKey = { masterKeyId: string; wrapped: Buffer };

export type MasterKeys = ReturnType<typeof makeMasterKeys>;

/** The first key wraps data keys; the others unwrap those from before a rotation. @throws TypeError without a key. */
export function makeMasterKeys(keys: readonly MasterKey[]) {
  const [current] = keys;
  if (current === undefined) throw new TypeError("there is no master key");
  const contextOf = (tenantId: string) => `data-key:${tenantId}`;
  return {
    currentId: current.id,
    wrap(tenantId: string, dataKey: Buffer): WrappedKey {
      return { masterKeyId: current.id, wrapped: seal(current.key, dataKey, contextOf(tenantId)) };
    },
    /** Null when the master key is missing, or the bytes are not what it wrapped for this tenant. */
    unwrap(tenantId: string, { masterKeyId, wrapped }: WrappedKey): Buffer | null {
      const master = keys.find(({ id }) => id === masterKeyId);
      return master === undefined ? null : open(master.key, wrapped, contextOf(tenantId));
    },
  };
}

/**
 * The master keys of the settings; without any, for a store on this machine, one that is made once and kept in the data
 * folder, readable by its owner only. Null when the store is elsewhere: then a key in this folder would be lost with it.
 */
export async function openMasterKeys(options: {
  setting: string | undefined;
  dataDir: string;
  mongoUrl: string | undefined;
}): Promise<MasterKeys | null> {
  const { setting, dataDir, mongoUrl } = options;
  if (setting !== undefined) return makeMasterKeys(parseMasterKeys(setting) ?? []);
  const isLocal = mongoUrl === undefined || mongoUrl.includes("%2F"); // a Unix socket, as the embedded server's
  if (!isLocal) return null;
  const path = join(dataDir, "master.key");
  const text = await keepSecret(path, () => randomBytes(MASTER_KEY_BYTES).toString("base64"));
  const keys = parseMasterKeys(text);
  if (keys === null) throw new Error(`${path} does not hold a master key`);
  return makeMasterKeys(keys);
}

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
