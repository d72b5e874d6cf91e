import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, readdir, rename } from "node:fs/promises";
import { join, resolve } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { ConfigError } from "../../src/lib/errors.ts";
import { openDataFolder } from "../../src/lib/private-files.ts";

const STORE = "store.sqlite";
/** More than any data file has: all are copied in one step, which sees the store as it is at one moment. */
const ALL_PAGES = 2 ** 31 - 1;
/** The master key opens customers' provider keys; the others are printed by `npm start`. All are small. */
const secrets = ["master.key", "bootstrap.key", "admin.token"];

/**
 * Saves the store and the secrets of a data folder into `folder`, for this user alone. Redis is not saved: queues are
 * filled again from the store. Returns the names of the files.
 * @throws ConfigError when the folder holds something.
 */
export async function backUp(options: { dataDir: string; folder: string }): Promise<string[]> {
  const { dataDir } = options;
  const folder = resolve(options.folder);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await readdir(folder)).length > 0) throw new ConfigError(`${folder} is not empty: name a new folder.`);
  const saved = secrets.filter((name) => existsSync(join(dataDir, name)));
  for (const name of saved) await copyPrivately(join(dataDir, name), join(folder, name));
  // Under another name until it is whole: a backup that was cut short is not one.
  const draft = join(folder, `${STORE}.part`);
  await copyStore(join(dataDir, STORE), draft);
  await chmod(draft, 0o600);
  await rename(draft, join(folder, STORE));
  return [STORE, ...saved];
}

/**
 * Makes a new data folder of a backup.
 * @throws ConfigError when `folder` is no backup, or the data folder holds a store.
 */
export async function restore(options: { dataDir: string; folder: string }): Promise<string[]> {
  const { dataDir } = options;
  const folder = resolve(options.folder);
  if (!existsSync(join(folder, STORE))) throw new ConfigError(`${folder} holds no backup: it has no ${STORE}.`);
  await openDataFolder(dataDir);
  if ((await readdir(dataDir)).length > 0) {
    throw new ConfigError(`DATA_DIR: ${dataDir} is not empty. Stop Switchyard and move it, or set another one.`);
  }
  const saved = secrets.filter((name) => existsSync(join(folder, name)));
  for (const name of [...saved, STORE]) await copyPrivately(join(folder, name), join(dataDir, name));
  return [STORE, ...saved];
}

/**
 * Copies what is committed by SQLite's online backup, while the store works: it keeps writing its log, which grows until
 * the copy is made. https://www.sqlite.org/backup.html
 */
async function copyStore(from: string, to: string): Promise<void> {
  const store = new DatabaseSync(from, { readOnly: true });
  try {
    await backup(store, to, { rate: ALL_PAGES });
  } finally {
    store.close();
  }
}

async function copyPrivately(from: string, to: string): Promise<void> {
  await copyFile(from, to);
  await chmod(to, 0o600);
}
