import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/** What is known of an item; the last line about it counts. */
export type Entry = {
  target: string;
  id: string;
  /** The local file that it is, or that lists it; an earlier release noted none. */
  file?: string | undefined;
  glob?: string | undefined;
  fingerprint: string;
  /** SHA-256 of a file's bytes. */
  hash?: string | undefined;
  /** `submitting`: the server may have it or not. `removed`: the item is gone, and its document too. */
  state: "submitting" | "accepted" | "done" | "failed" | "removed";
  /** The `externalId` of a document whose id is not known yet. */
  key?: string | undefined;
  jobId?: string | undefined;
  /** The document that it has, or replaces. */
  documentId?: string | undefined;
  /** Documents that go once the item is loaded as another one. */
  former?: string[] | undefined;
  chunks?: number;
  reason?: string;
  /** How often this version of the item has failed. */
  failures: number;
  tenantId?: string | undefined;
  at: string;
};
export type NewEntry = Omit<Entry, "target" | "at" | "tenantId">;

/** What earlier runs did, and what this one does: a file of JSON lines that is only ever added to. */
export type Manifest = {
  find(id: string): Entry | undefined;
  /** What is known of items whose documents may be there. */
  entries(): Entry[];
  /** Notes entries: all of them, or none if the process is killed. */
  write(...entries: readonly NewEntry[]): void;
  /** Whose documents are noted from now on. */
  setTenant(tenantId: string): void;
  close(): void;
};

/**
 * Reads a manifest, and makes it with its first entry. Lines are written whole before the call returns, so a process that is
 * killed loses nothing that it has written; a line that was cut all the same is ignored. With `isReadOnly` no file is written.
 */
export function openManifest(path: string, target: string, { isReadOnly }: { isReadOnly: boolean }): Manifest {
  const known = new Map<string, Entry>();
  const text = readText(path);
  for (const line of text.split("\n")) {
    const entry = parseLine(line);
    if (entry?.target === target) known.set(entry.id, entry);
  }
  let file: number | undefined;
  let tenantId: string | undefined;
  const open = () => {
    const opened = openSync(path, "a", 0o600);
    if (text !== "" && !text.endsWith("\n")) writeSync(opened, "\n");
    return opened;
  };
  return {
    find: (id) => known.get(id),
    entries: () => [...known.values()].filter(({ state }) => state !== "removed"),
    write(...entries) {
      if (entries.length === 0) return;
      const at = new Date().toISOString();
      const lines = entries.map((entry): Entry => ({ target, ...entry, tenantId, at }));
      for (const line of lines) known.set(line.id, line);
      if (isReadOnly) return;
      file ??= open();
      writeSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    },
    setTenant(id) {
      tenantId = id;
    },
    close() {
      if (file !== undefined) closeSync(file);
    },
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
