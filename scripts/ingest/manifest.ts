import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/** What is known of an item; the last line about it counts. */
export type Entry = {
  target: string;
  id: string;
  fingerprint: string;
  state: "accepted" | "done" | "failed";
  jobId?: string;
  documentId?: string;
  chunks?: number;
  reason?: string;
  /** How often this version of the item has failed. */
  failures: number;
  at: string;
};

/** What earlier runs did, and what this one does: a file of JSON lines that is only ever added to. */
export type Manifest = {
  find(id: string): Entry | undefined;
  /** The items that were loaded last, newest first. */
  lastLoaded(limit: number): Entry[];
  write(entry: Omit<Entry, "target" | "at">): void;
  close(): void;
};

/**
 * Opens a manifest, making it when it is new. A line is written whole before the call returns, so a process that is killed
 * loses nothing that it has written; a line that was cut all the same is ignored.
 */
export function openManifest(path: string, target: string): Manifest {
  const known = new Map<string, Entry>();
  const text = readText(path);
  for (const line of text.split("\n")) {
    const entry = parseLine(line);
    if (entry?.target === target) known.set(entry.id, entry);
  }
  const file = openSync(path, "a", 0o600);
  if (text !== "" && !text.endsWith("\n")) writeSync(file, "\n");
  return {
    find: (id) => known.get(id),
    lastLoaded: (limit) =>
      [...known.values()]
        .filter(({ state }) => state === "done")
        .sort((one, other) => other.at.localeCompare(one.at))
        .slice(0, limit),
    write(entry) {
      const line: Entry = { target, ...entry, at: new Date().toISOString() };
      known.set(line.id, line);
      writeSync(file, `${JSON.stringify(line)}\n`);
    },
    close: () => closeSync(file),
  };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function parseLine(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && "id" in value && "state" in value
      ? (value as Entry)
      : undefined;
  } catch {
    return undefined; // the last line of a process that died while it wrote
  }
}
