import { lstat } from "node:fs/promises";
import { extname, isAbsolute, sep } from "node:path";
import type { Found, Item } from "./item.ts";
import type { Entry } from "./manifest.ts";
import { codeOf, jsonLines } from "./walk-folder.ts";

/** A noted item that is not there any more. `isAskedFor`: it was in what the command names, so that `--prune` is about it. */
export type Gone = { entry: Entry; isAskedFor: boolean };

/** The noted items whose files, or lines of lists, are gone. What cannot be read, or has another type now, is there. */
export async function findGone(
  entries: readonly Entry[],
  { items, found }: { items: readonly Item[]; found: Found },
): Promise<Gone[]> {
  const there = new Set([...items, ...found.problems, ...found.leftOut].map(({ id }) => id));
  const gone: Gone[] = [];
  for (const entry of entries) {
    const file = fileOf(entry);
    if (there.has(entry.id) || file === undefined) continue;
    const isLineOf = entry.id !== file && found.lists.has(file);
    if (!isLineOf && !(await isDeleted(file))) continue;
    const isBelow = found.folders.some((folder) => file.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`));
    const isFoundBy = entry.glob !== undefined && found.globs.includes(entry.glob);
    gone.push({ entry, isAskedFor: isLineOf || isBelow || isFoundBy });
  }
  return gone;
}

/** The local file that an item is, or that lists it; an earlier release noted none. */
export function fileOf({ file: noted, id }: Entry): string | undefined {
  if (noted !== undefined || !isAbsolute(id)) return noted; // a URL has none
  const file = id.replace(/#\d+$/, "");
  return jsonLines.has(extname(file).toLowerCase()) ? file : id;
}

async function isDeleted(path: string): Promise<boolean> {
  const error = await lstat(path).then(() => undefined, codeOf);
  return error === "ENOENT" || error === "ENOTDIR";
}
