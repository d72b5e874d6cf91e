import { createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";
import { AppError } from "../lib/errors.ts";
import { keepSecret } from "../lib/private-files.ts";

/** What the processes of one data folder prove themselves to each other by. */
export type ServiceSecrets = {
  /** Password of the embedded store, which proves by it too that it is the one (SCRAM). */
  mongo: string;
  /** Password of the private redis-server. */
  redis: string;
  /** What that server shows to a client with the password. A false server that accepts any password does not know it. */
  redisProof: string;
};

const SECRET_BYTES = 32;

/**
 * Reads the secret of a data folder, which the first process makes. Each use has a value of its own derived from it: the
 * password that a false Redis receives opens nothing else.
 * @throws AppError `unavailable` when the file is another user's, or holds something else.
 */
export async function openServiceSecrets(dataDir: string): Promise<ServiceSecrets> {
  const path = join(dataDir, "services.secret");
  const text = await keepSecret(path, () => randomBytes(SECRET_BYTES).toString("base64url"));
  if (Buffer.from(text, "base64url").length !== SECRET_BYTES) {
    throw new AppError("unavailable", `${path} does not hold a secret: stop what runs, remove it, and start again.`);
  }
  const derive = (use: string) => `sw-${createHmac("sha256", text).update(use).digest("base64url")}`;
  return { mongo: derive("mongo"), redis: derive("redis"), redisProof: derive("redis-proof") };
}
