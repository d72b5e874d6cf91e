import { createHash } from "node:crypto";
import { rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPrivateFolder } from "../lib/private-files.ts";

/** The longest path of a socket that every system takes, in bytes: 107 on Linux, 103 on macOS. */
const MAX_SOCKET_PATH_BYTES = 103;

/**
 * The sockets of a data folder, in a folder of their own for its owner only: `run` in the data folder, or where its path is
 * too long for a socket, one in the system's temporary folder. The place follows from the data folder alone, so that every
 * process finds the same, whatever its session.
 * @throws AppError `unavailable` when the folder is there and not this user's own.
 */
export async function openSocketFolder(dataDir: string) {
  const inside = pathsIn(join(dataDir, "run"));
  const isUsable = Buffer.byteLength(inside.mongo) <= MAX_SOCKET_PATH_BYTES && !inside.redis.includes("?"); // of a URL
  const name = createHash("sha256").update(`${process.getuid?.()}:${dataDir}`).digest("hex").slice(0, 12);
  const paths = isUsable ? inside : pathsIn(join(tmpdir(), `switchyard-${name}`));
  await openPrivateFolder(paths.folder);
  return {
    mongo: paths.mongo,
    redis: paths.redis,
    /** Removes the folder when it is empty and not in the data folder. */
    tidy: async () => {
      if (!isUsable) await rmdir(paths.folder).catch(() => undefined); // in use by the next host, or gone
    },
  };
}

function pathsIn(folder: string) {
  return { folder, mongo: join(folder, "mongo.sock"), redis: join(folder, "redis.sock") };
}
