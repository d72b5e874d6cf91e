import { basename } from "node:path";
import type { IngestClient, Warning } from "./client.ts";
import type { Item } from "./item.ts";
import { loadItems } from "./load.ts";
import type { Entry, Manifest, NewEntry } from "./manifest.ts";
import type { Plan, Rename } from "./plan.ts";
import { showProgress } from "./report.ts";
import type { Stopping } from "./stop-on-signal.ts";
import { tryAgain } from "./try-again.ts";
import type { Problem } from "./walk-folder.ts";

type Deps = { client: IngestClient; manifest: Manifest; stopping: Stopping; concurrency: number; isQuiet: boolean };

/** What a run has done. */
export type Done = {
  loaded: number;
  replaced: number;
  renamed: { from: string; to: string }[];
  removed: string[];
  warnings: (Warning & { id: string })[];
  failures: Problem[];
  /** Items that the user's stop left. */
  left: number;
  isStopped: boolean;
};

/** Does what a plan says: names first, then texts; what is gone goes last. Each part may be cut at any point and repeated. */
export async function carryOut(deps: Deps, plan: Plan, isPruning: boolean): Promise<Done> {
  const { manifest, stopping } = deps;
  const none = { loaded: 0, replaced: 0, renamed: [], removed: [], warnings: [], failures: [] };
  const done: Done = { ...none, left: 0, isStopped: false };
  manifest.write(...plan.touched);
  const again = await renameAll(deps, plan.renames, done);
  await loadAll(deps, { items: [...plan.load, ...again, ...plan.replace], replaced: new Set(plan.replace) }, done);
  if (isPruning && !stopping.signal.aborted) await removeAll(deps, plan.remove, done);
  return { ...done, isStopped: stopping.signal.aborted };
}

/**
 * Gives documents the new names of their files, and returns the items that are to be read. The names are noted together, so
 * that no document is without an item, or of two, wherever the process is killed.
 */
async function renameAll({ client, manifest, stopping }: Deps, renames: readonly Rename[], done: Done) {
  const again: Item[] = [];
  const entries: NewEntry[] = [];
  for (const { item, from, entry } of renames) {
    const { documentId = "" } = entry;
    const isRead = entry.state !== "done";
    const isNamed = isRead || basename(from.id) === basename(item.id);
    const response = isNamed
      ? { status: 200, message: "" }
      : await tryAgain(() => client.renameDocument(documentId, basename(item.id)), stopping);
    if (response === undefined) break;
    if (response.status !== 200) {
      done.failures.push({ id: item.id, reason: `not renamed: ${response.message}` });
      continue;
    }
    entries.push(entry, { ...from, state: "removed" });
    done.renamed.push({ from: from.id, to: item.id });
    if (isRead) again.push(item);
  }
  manifest.write(...entries);
  return again;
}

async function loadAll(
  { client, manifest, stopping, concurrency, isQuiet }: Deps,
  { items, replaced }: { items: readonly Item[]; replaced: ReadonlySet<Item> },
  done: Done,
): Promise<void> {
  const progress = showProgress(items.length, isQuiet || items.length === 0);
  stopping.onStop(() => progress.say("stopping …"));
  done.left = items.length;
  await loadItems(
    {
      client,
      manifest,
      concurrency,
      signal: stopping.signal,
      onPace: progress.onPace,
      onEnd(item, outcome) {
        if (outcome.kind === "stopped") return;
        done.left -= 1;
        progress.onEnd(outcome.kind === "failed");
        if (outcome.kind === "failed") return void done.failures.push({ id: item.id, reason: outcome.reason });
        done.loaded += 1;
        if (replaced.has(item)) done.replaced += 1;
        done.warnings.push(...outcome.warnings.map((warning) => ({ id: item.id, ...warning })));
      },
    },
    items,
  );
  progress.stop();
}

/** Removes the documents of items that are gone, except those that an item which is there has too. */
async function removeAll({ client, manifest, stopping }: Deps, gone: readonly Entry[], done: Done): Promise<void> {
  const ids = new Set(gone.map(({ id }) => id));
  const others = manifest.entries().filter(({ id }) => !ids.has(id));
  const kept = new Set(others.map(({ documentId }) => documentId));
  for (const entry of gone) {
    const documentIds = [entry.documentId, ...(entry.former ?? [])].filter((id) => id !== undefined && !kept.has(id));
    const reasons: string[] = [];
    for (const id of documentIds) {
      const response = await tryAgain(() => client.removeDocument(id ?? ""), stopping);
      if (response === undefined) return;
      if (response.status !== 204 && response.status !== 404) reasons.push(response.message);
    }
    const [reason] = reasons;
    if (reason !== undefined) done.failures.push({ id: entry.id, reason: `not removed: ${reason}` });
    else {
      manifest.write({ ...entry, state: "removed" });
      done.removed.push(entry.id);
    }
  }
}
