import { createHash } from "node:crypto";
import { z } from "zod";

/** Bytes of a key of AES-256. */
export const MASTER_KEY_BYTES = 32;

export type MasterKey = { id: string; key: Buffer };

/** Reads `MASTER_KEY`: 32 bytes in base64, or several by commas, each as `id:base64` or without an id. Null: it is none. */
export function parseMasterKeys(text: string): MasterKey[] | null {
  const keys = text.split(",").map((part) => {
    const [, id, encoded = ""] = /^(?:([\w-]{1,32}):)?(.*)$/.exec(part.trim()) ?? [];
    const key = Buffer.from(encoded, "base64");
    return { id: id ?? fingerprint(key), key };
  });
  const areWhole = keys.every(({ key }) => key.length === MASTER_KEY_BYTES);
  return areWhole && new Set(keys.map(({ id }) => id)).size === keys.length ? keys : null;
}

/** `MASTER_KEY` as a setting. */
export const masterKeyForm = z
  .string()
  .refine((text) => parseMasterKeys(text) !== null, "must be 32 bytes in base64, or several as id:base64,id:base64")
  .optional();

/** Names a key by a part of its hash, so that an operator need not name it. */
function fingerprint(key: Buffer): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 12);
}
