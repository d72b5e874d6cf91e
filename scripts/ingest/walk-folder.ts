import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";

/** A part of what was asked for that is not loaded, and why. */
export type Problem = { id: string; reason: string };

/** The files to load, what should be loaded and cannot be, and what is left out on purpose. */
export type Walked = { files: string[]; problems: Problem[]; leftOut: Problem[] };

/** What folders and globs are searched for; a file that is named itself is loaded whatever its name. */
const documentTypes = new Set(
  (
    ".pdf .docx .docm .dotx .xlsx .xlsm .xltx .pptx .pptm .ppsx .potx .html .htm .xhtml .md .markdown .mdown .mkd .csv .tsv .tab " +
    ".txt .text"
  ).split(" "),
);
export const jsonLines = new Set([".jsonl", ".ndjson"]);
export const skippedFolders = new Set(["node_modules", "__pycache__"]);

/** The documents below a folder, without hidden folders; links are followed to files of the folder. */
export async function walkFolder(root: string): Promise<Walked> {
  const problems: Problem[] = [];
  const paths = await pathsBelow(root, problems);
  const { files, ...others } = await sortOut(paths.sort(), root);
  return { files, leftOut: others.leftOut, problems: [...problems, ...others.problems] };
}

async function pathsBelow(folder: string, problems: Problem[]): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    problems.push({ id: folder, reason: `the folder cannot be read: ${codeOf(error)}` });
    return [];
  });
  const paths: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith(".") || skippedFolders.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) paths.push(...(await pathsBelow(path, problems)));
    else paths.push(path);
  }
  return paths;
}

/** Parts paths by what is to become of them. A file that a folder has by several names is loaded once, by its own. */
export async function sortOut(paths: readonly string[], root: string): Promise<Walked> {
  const sorted: Walked = { files: [], problems: [], leftOut: [] };
  const links: string[] = [];
  for (const path of paths) {
    const about = await lstat(path).catch(() => undefined);
    const reason = whyLeftOut(path);
    if (!about || about.isDirectory()) continue; // it has gone, or a glob named a folder
    if (reason !== undefined) sorted.leftOut.push({ id: path, reason });
    else if (about.isSymbolicLink()) links.push(path);
    else if (about.isFile()) sorted.files.push(path);
    else sorted.leftOut.push({ id: path, reason: "it is not a regular file" });
  }
  await followLinks(links, { root: await realpath(root), sorted });
  sorted.files.sort();
  return sorted;
}

async function followLinks(links: readonly string[], { root, sorted }: { root: string; sorted: Walked }) {
  if (links.length === 0) return;
  const known = new Map<string, string>();
  for (const path of sorted.files) known.set(await realpath(path), path);
  for (const id of links) {
    const target = await realpath(id).catch((error: unknown) => {
      const reason =
        codeOf(error) === "ENOENT" ? "the link leads to nothing" : `the link cannot be followed: ${codeOf(error)}`;
      sorted.problems.push({ id, reason });
    });
    if (target === undefined) continue;
    const same = known.get(target);
    if (!`${target}${sep}`.startsWith(root === sep ? sep : `${root}${sep}`))
      sorted.leftOut.push({ id, reason: "the link leads out of the folder" });
    else if (!(await stat(target)).isFile()) sorted.leftOut.push({ id, reason: "links are followed to files only" });
    else if (same !== undefined)
      sorted.leftOut.push({ id, reason: `a link to ${relative(root, target)}, which is loaded once` });
    else {
      known.set(target, id);
      sorted.files.push(id);
    }
  }
}

function whyLeftOut(path: string): string | undefined {
  const ending = extname(path).toLowerCase();
  if (documentTypes.has(ending)) return undefined;
  if (jsonLines.has(ending)) return "a list is loaded if it is named itself";
  return ending === "" ? "a name without an ending tells no type" : `${ending} is no type that is loaded`;
}

/** The code of a system's error, as `EACCES`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

/** SHA-256 of a file's bytes. @throws what the system says when it cannot be read. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const part of createReadStream(path)) hash.update(part);
  return hash.digest("base64url");
}
