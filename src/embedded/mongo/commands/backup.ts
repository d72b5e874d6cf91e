import { isAbsolute } from "node:path";
import { backup } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { badValue, commandError } from "../command-error.ts";
import type { Engine } from "../engine.ts";
import { type CommandFamily, defineCommand } from "./command.ts";

/** A copy that meets an open write is retried after this wait, this often at most. */
const RETRY_MS = 20;
const MAX_RETRIES = 500;

/** The copies of a store that are under way, or have ended without being asked for since, by their files. */
type Copies = Map<string, "running" | "done" | { error: unknown }>;
const backups = new WeakMap<Engine, Copies>();

/**
 * Copies the data to a new file by SQLite's online backup, while the store works. The first call starts the copy; the same
 * call again answers whether it is done. The copy holds what was committed when it ends.
 * https://www.sqlite.org/backup.html
 */
export const backupCommands: CommandFamily = {
  backupTo: defineCommand("backupTo", {}, ({ engine, target }) => {
    if (typeof target !== "string" || !isAbsolute(target)) throw badValue("backupTo needs the absolute path of a file");
    const all: Copies = backups.get(engine) ?? new Map();
    backups.set(engine, all);
    const state = all.get(target) ?? "running";
    if (!all.has(target)) {
      all.set(target, state);
      copy(engine, target).then(
        () => all.set(target, "done"),
        (error: unknown) => all.set(target, { error }),
      );
    }
    if (state === "running") return { done: false };
    all.delete(target);
    if (state === "done") return { done: true };
    engine.logger.error({ err: state.error }, "a backup failed");
    throw commandError("OperationFailed", `the backup failed: ${String(state.error)}`);
  }),
};

async function copy(engine: Engine, path: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await backup(engine.storage.sqlite, path);
      return;
    } catch (error) {
      // Node has no text of its own for a copy whose first step met an open write: SQLite's is "not an error".
      const isLocked = error instanceof Error && /locked|busy|not an error/i.test(error.message);
      if (!isLocked || attempt >= MAX_RETRIES) throw error;
      await delay(RETRY_MS);
    }
  }
}
