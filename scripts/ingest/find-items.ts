import { createHash } from "node:crypto";
import { glob, open, readdir, readFile, stat } from "node:fs/promises";
import { basename, extname, join, resolve } from "node:path";

/** Something to load. `fingerprint` changes when it does. */
export type Item = {
  /** The same at every run: an absolute path, a URL, or a JSONL file with the number of the line. */
  id: string;
  fingerprint: string;
  bytes: number;
  source:
    | { kind: "file"; path: string }
    | { kind: "url"; url: string }
    | { kind: "json"; body: Record<string, unknown> };
};

/** A part of what was asked for that cannot be loaded, and why. */
export type Problem = { id: string; reason: string };

/** What folders and globs are searched for; a file that is named itself is loaded whatever its name. */
const documentTypes = new Set(
  (
    ".pdf .docx .docm .dotx .xlsx .xlsm .xltx .pptx .pptm .ppsx .potx .html .htm .xhtml .md .markdown .mdown .mkd .csv .tsv .tab " +
    ".txt .text"
  ).split(" "),
);
const jsonLines = new Set([".jsonl", ".ndjson"]);
const skippedFolders = new Set(["node_modules", "__pycache__"]);
/** A text file is a list of URLs if at least half of the lines at its beginning are; the size of that beginning, in bytes. */
const LOOKED_AT = 64 * 1024;
const url = /^https?:\/\/\S+$/i;

type Found = {
  problems: Problem[];
  /** What a person should know: which files are lists. */
  notes: string[];
  /** Files of folders and globs that are no documents. */
  passedOver: number;
};

/** Everything that the arguments name, each once, in their order: files, folders, globs, URLs, lists of URLs and JSONL. */
export async function findItems(args: readonly string[]): Promise<Found & { items: Item[] }> {
  const items = new Map<string, Item>();
  const found: Found = { problems: [], notes: [], passedOver: 0 };
  for (const arg of args) {
    const named = url.test(arg) ? [toUrlItem(arg)] : await findAt(arg, found);
    for (const item of named) items.set(item.id, item);
  }
  return { items: [...items.values()], ...found };
}

async function findAt(arg: string, found: Found): Promise<Item[]> {
  const path = resolve(arg);
  const about = await stat(path).catch(() => undefined);
  if (about?.isDirectory()) return toFileItems(await filesIn(path), found);
  if (about) return readNamedFile(path, found);
  if (/[*?[{]/.test(arg)) {
    const matched = await Array.fromAsync(glob(arg, { exclude: (name) => skippedFolders.has(basename(name)) }));
    const paths = matched.map((match) => resolve(match)).sort();
    if (paths.length === 0) found.problems.push({ id: arg, reason: "nothing matches it" });
    return toFileItems(paths, found);
  }
  found.problems.push({ id: arg, reason: "there is no such file or folder" });
  return [];
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .filter(({ name }) => !name.startsWith(".") && !skippedFolders.has(name))
      .map((entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) return filesIn(path);
        return Promise.resolve(entry.isFile() ? [path] : []);
      }),
  );
  return found.flat().sort();
}

const isDocument = (path: string) => documentTypes.has(extname(path).toLowerCase());

async function toFileItems(paths: readonly string[], found: Found): Promise<Item[]> {
  const documents = paths.filter(isDocument);
  found.passedOver += paths.length - documents.length;
  return (await Promise.all(documents.map((path) => readNamedFile(path, found)))).flat();
}

async function toFileItem(path: string, found: Found): Promise<Item[]> {
  const about = await stat(path).catch(() => undefined);
  if (about?.isFile() !== true) return [];
  if (about.size === 0) {
    found.problems.push({ id: path, reason: "the file is empty" });
    return [];
  }
  const fingerprint = `${about.size}:${Math.round(about.mtimeMs)}`;
  return [{ id: path, fingerprint, bytes: about.size, source: { kind: "file", path } }];
}

/** A file may be a list: JSONL by its name, URLs by its lines. */
async function readNamedFile(path: string, found: Found): Promise<Item[]> {
  if (jsonLines.has(extname(path).toLowerCase())) return readJsonLines(path, found);
  if (extname(path).toLowerCase() === ".txt" && (await isUrlList(path))) {
    const lines = (await readFile(path, "utf8")).split("\n").map((line) => line.trim());
    found.notes.push(`${path}: a list of URLs, ${lines.filter((line) => url.test(line)).length} in all`);
    return lines.flatMap((line, index) => {
      if (line === "" || line.startsWith("#")) return [];
      if (url.test(line)) return [toUrlItem(line)];
      found.problems.push({ id: `${path}#${index + 1}`, reason: "the line is not a URL" });
      return [];
    });
  }
  return toFileItem(path, found);
}

async function isUrlList(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LOOKED_AT), 0, LOOKED_AT, 0);
    const lines = buffer
      .toString("utf8", 0, bytesRead)
      .split("\n")
      .slice(0, bytesRead === LOOKED_AT ? -1 : undefined)
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("#"));
    return lines.length > 0 && lines.filter((line) => url.test(line)).length * 2 >= lines.length;
  } finally {
    await file.close();
  }
}

function toUrlItem(address: string): Item {
  return { id: address, fingerprint: "url", bytes: 0, source: { kind: "url", url: address } };
}

/** Each line an object with `content` or `url`, as `POST /rag/ingest` takes them. */
async function readJsonLines(path: string, found: Found): Promise<Item[]> {
  const lines = (await readFile(path, "utf8")).split("\n");
  return lines.flatMap((line, index): Item[] => {
    if (line.trim() === "") return [];
    const id = `${path}#${index + 1}`;
    const body = readBody(line);
    if (body === undefined) {
      found.problems.push({ id, reason: 'the line is no JSON object with "content" or "url"' });
      return [];
    }
    const fingerprint = createHash("sha256").update(line).digest("hex").slice(0, 32);
    return [{ id, fingerprint, bytes: Buffer.byteLength(line), source: { kind: "json", body } }];
  });
}

function readBody(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const body: Record<string, unknown> = { ...value };
    return typeof body.content === "string" || typeof body.url === "string" ? body : undefined;
  } catch {
    return undefined; // a line that is not JSON is reported as a problem by its number
  }
}
