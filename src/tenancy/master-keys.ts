import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { MASTER_KEY_BYTES, type MasterKey, parseMasterKeys } from "../config/master-key.ts";
import { keepSecret } from "../lib/private-files.ts";
import { open, seal } from "./envelope.ts";

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
