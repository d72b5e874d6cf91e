import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";

/**
 * The folder of a data folder's sockets, made when it is missing, for its owner only. It is in the system's temporary
 * folder, since a socket's path must stay under 108 bytes (sun_path) however deep the data folder lies.
 */
export async function socketFolder(dataDir: string): Promise<string> {
  const name = createHash("sha256").update(`${userInfo().uid}:${dataDir}`).digest("hex").slice(0, 12);
  const folder = join(tmpdir(), `switchyard-${name}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}
