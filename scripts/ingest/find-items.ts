import { constants } from "node:fs";
import { access, glob, stat } from "node:fs/promises";
import { basename, dirname, extname, resolve } from "node:path";
import type { Found, Item } from "./item.ts";
import { isUrlList, readJsonLines, readUrlList, toUrlItem, url } from "./read-lists.ts";
import { codeOf, jsonLines, skippedFolders, sortOut, type Walked, walkFolder } from "./walk-folder.ts";

/** Everything that the arguments name, each once, in their order: files, folders, globs, URLs, lists of URLs and JSONL. */
export async function findItems(args: readonly string[]): Promise<Found & { items: Item[] }> {
  const items = new Map<string, Item>();
  const found: Found = { problems: [], leftOut: [], notes: [], folders: [], globs: [], lists: new Set() };
  for (const arg of args) {
    const named = url.test(arg) ? [toUrlItem(arg)] : await findAt(arg, found);
    for (const item of named) items.set(item.id, item);
  }
  const leftOut = found.leftOut.filter(({ id }) => !items.has(id) && !found.lists.has(id)); // it may be named as well
  return { items: [...items.values()], ...found, leftOut };
}

async function findAt(arg: string, found: Found): Promise<Item[]> {
  const path = resolve(arg);
  const about = await stat(path).catch(codeOf);
  if (typeof about !== "string" && about.isDirectory()) {
    found.folders.push(path);
    return toFileItems(await walkFolder(path), found);
  }
  if (typeof about !== "string") return readNamedFile(path, found);
  if (/[*?[{]/.test(arg)) {
    const matched = await Array.fromAsync(glob(arg, { exclude: (name) => skippedFolders.has(basename(name)) }));
    if (matched.length === 0) found.problems.push({ id: arg, reason: "nothing matches it" });
    found.globs.push(path);
    const paths = matched.map((match) => resolve(match)).sort();
    const [above = ""] = arg.split(/[*?[{]/, 1);
    const items = await toFileItems(await sortOut(paths, resolve(dirname(`${above}x`))), found);
    return items.map((item) => ({ ...item, glob: path }));
  }
  const reason = about === "ENOENT" ? "there is no such file or folder" : `it cannot be read: ${about}`;
  found.problems.push({ id: arg, reason });
  return [];
}

async function toFileItems({ files, problems, leftOut }: Walked, found: Found): Promise<Item[]> {
  found.problems.push(...problems);
  found.leftOut.push(...leftOut);
  const items: Item[] = [];
  for (const path of files) items.push(...(await readNamedFile(path, found)));
  return items;
}

/** A file may be a list: JSONL by its name, URLs by its lines. */
async function readNamedFile(path: string, found: Found): Promise<Item[]> {
  try {
    await access(path, constants.R_OK);
    if (jsonLines.has(extname(path).toLowerCase())) return await readJsonLines(path, found);
    if (extname(path).toLowerCase() === ".txt" && (await isUrlList(path))) return await readUrlList(path, found);
    return await toFileItem(path, found);
  } catch (error) {
    found.problems.push({ id: path, reason: `the file cannot be read: ${codeOf(error)}` });
    return [];
  }
}

async function toFileItem(path: string, found: Found): Promise<Item[]> {
  const about = await stat(path);
  if (!about.isFile()) throw new Error("it is not a regular file");
  if (about.size === 0) {
    found.problems.push({ id: path, reason: "the file is empty" });
    return [];
  }
  const fingerprint = `${about.size}:${Math.round(about.mtimeMs)}`;
  return [{ id: path, file: path, fingerprint, bytes: about.size, source: { kind: "file", path } }];
}
