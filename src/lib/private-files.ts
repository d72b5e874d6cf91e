import type { Stats } from "node:fs";
import { link, lstat, mkdir, open, stat, unlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { AppError } from "./errors.ts";
import { newId } from "./ids.ts";

/** Permissions of anybody but the owner: any of them, and those to write. */
const FOR_OTHERS = 0o077;
const WRITE_FOR_OTHERS = 0o022;

/**
 * Makes the data folder for its owner only, or checks the existing one. `isListable`: other users may read the names
 * of its files; the files have permissions of their own.
 * @throws AppError `unavailable` when it belongs to another user, or others may put files into it.
 */
export async function openDataFolder(path: string): Promise<{ isListable: boolean }> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw refusal(`DATA_DIR: ${path} cannot be used as a folder (${error.code}).`);
  });
  const entry = await lstat(path);
  // The operator may link to another disk; another user's link could be turned elsewhere at any time.
  if (entry.isSymbolicLink() && entry.uid !== 0) rejectForeign(path, entry);
  const folder = await stat(path);
  rejectForeign(path, folder);
  if (!hasOwners()) return { isListable: false };
  if ((folder.mode & WRITE_FOR_OTHERS) !== 0) {
    throw refusal(
      `${path} (${describe(folder)}) is writable by other users: run \`chmod 700\` on it, and start again.`,
    );
  }
  return { isListable: (folder.mode & FOR_OTHERS) !== 0 };
}

/** Makes or checks a folder of this user alone. @throws AppError `unavailable` when it is a link, or another's. */
export async function openPrivateFolder(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700 }).catch(unlessCode("EEXIST"));
  const folder = await lstat(path);
  const isPrivate = folder.isDirectory() && isOwn(folder) && (!hasOwners() || (folder.mode & FOR_OTHERS) === 0);
  if (!isPrivate) {
    const wanted = "has to be a folder of this user with mode 700";
    throw refusal(`${path} (${describe(folder)}) ${wanted}: remove it, or set another DATA_DIR, and start again.`);
  }
}

/** @throws AppError `unavailable` when another user owns the entry at `path`; a missing entry is fine. */
export async function rejectForeignEntry(path: string): Promise<void> {
  const entry = await lstat(path).catch(unlessCode("ENOENT"));
  if (entry) rejectForeign(path, entry);
}

/**
 * The text of a file that only its owner may read. When it is missing it is made, whole at once: several processes that
 * start together all read the same.
 * @throws AppError `unavailable` when it belongs to another user, or is empty.
 */
export async function keepSecret(path: string, make: () => string): Promise<string> {
  const existing = await readOwnFile(path);
  if (existing !== null) return existing;
  await openDataFolder(dirname(path));
  const draft = `${path}.${newId("request")}`;
  await writeFile(draft, `${make()}\n`, { mode: 0o600, flag: "wx", flush: true });
  try {
    await link(draft, path).catch(unlessCode("EEXIST")); // another process was faster
  } finally {
    await unlink(draft);
  }
  const made = await readOwnFile(path);
  if (made === null) throw refusal(`${path} was removed while it was made: start again.`);
  return made;
}

/** Null when there is none. One that others could read is closed to them. */
async function readOwnFile(path: string): Promise<string | null> {
  const file = await open(path, "r").catch(unlessCode("ENOENT"));
  if (!file) return null;
  try {
    const found = await file.stat();
    rejectForeign(path, found);
    if (hasOwners() && (found.mode & FOR_OTHERS) !== 0) await file.chmod(0o600);
    const text = (await file.readFile("utf8")).trim();
    if (text === "") throw refusal(`${path} is empty: put its text back, or remove it to have a new one made.`);
    return text;
  } finally {
    await file.close();
  }
}

/** Windows reports neither owner nor mode. */
function hasOwners(): boolean {
  return process.getuid !== undefined;
}

function isOwn({ uid }: Stats): boolean {
  return !hasOwners() || uid === process.getuid?.();
}

function rejectForeign(path: string, entry: Stats): void {
  if (isOwn(entry)) return;
  const advice = "if it is yours, change its owner, else set another DATA_DIR";
  throw refusal(
    `${path} (${describe(entry)}) does not belong to user ${process.getuid?.()}, who starts this: ${advice}.`,
  );
}

function describe(entry: Stats): string {
  const kind = entry.isSymbolicLink() ? "a link" : entry.isDirectory() ? "a folder" : "a file";
  return `${kind} of user ${entry.uid} with mode ${(entry.mode & 0o7777).toString(8)}`;
}

function refusal(message: string): AppError {
  return new AppError("unavailable", message);
}

function unlessCode(code: string): (error: unknown) => undefined {
  return (error) => {
    if (!(error instanceof Error && "code" in error && error.code === code)) throw error;
  };
}
