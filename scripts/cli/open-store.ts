import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/config/config.ts";
import { ConfigError } from "../../src/lib/errors.ts";
import { openPlatform, type Platform } from "../../src/platform.ts";

/**
 * Runs a command on the store that the settings name, and closes it after. It prints which store that is on standard error.
 * @throws ConfigError when there is no store: a command of an operator never makes one.
 */
export async function withStore<T>(name: string, command: (platform: Platform) => Promise<T>): Promise<T> {
  const config = loadConfig();
  const isEmbedded = config.mongo.url === undefined;
  if (isEmbedded && !existsSync(join(config.dataDir, "store.sqlite"))) {
    throw new ConfigError(
      `There is no store in ${config.dataDir}. Set DATA_DIR or MONGODB_URL as the server has it, or ask the API with --url and --key.`,
    );
  }
  console.error(`store: ${isEmbedded ? config.dataDir : `database ${config.mongo.db} of MONGODB_URL`}`);
  const platform = await openPlatform({ ...config, logLevel: "error" }, { name });
  try {
    return await command(platform);
  } finally {
    await platform.close();
  }
}
