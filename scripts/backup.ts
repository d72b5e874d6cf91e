import { Command } from "commander";
import { loadConfig } from "../src/config/config.ts";
import { AppError, ConfigError } from "../src/lib/errors.ts";
import { backUp, restore } from "./backup/folder.ts";
import { withStore } from "./cli/open-store.ts";

/**
 * `npm run backup -- FOLDER` saves the embedded store of DATA_DIR, also while Switchyard runs; `npm run restore -- FOLDER`
 * makes a new DATA_DIR of it. Exit code 0, 1 for a failure, 2 for wrong settings or arguments.
 */
const program = new Command("backup");

program
  .command("save")
  .description("save the embedded store, its master key and the first keys into a new folder, while Switchyard runs")
  .argument("<folder>", "a folder that is not there yet, or is empty")
  .action(async (folder: string) => {
    const { mongo, dataDir } = loadConfig();
    if (mongo.url !== undefined) {
      throw new ConfigError("MONGODB_URL names a server with backups of its own: see docs/deploy.md for what to save.");
    }
    const files = await withStore("backup", () => backUp({ dataDir, folder }));
    console.log(`saved ${files.join(", ")} in ${folder}`);
  });

program
  .command("restore")
  .description("make a new data folder of a backup; Switchyard must not run on it")
  .argument("<folder>", "a folder that `npm run backup` has made")
  .action(async (folder: string) => {
    const { dataDir } = loadConfig();
    const files = await restore({ dataDir, folder });
    console.log(`restored ${files.join(", ")} into ${dataDir}: start Switchyard on it`);
  });

try {
  await program.parseAsync();
} catch (error) {
  const isExpected = error instanceof AppError || error instanceof ConfigError;
  console.error(isExpected ? error.message : error);
  process.exit(error instanceof ConfigError ? 2 : 1);
}
