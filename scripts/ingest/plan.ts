import { basename, extname } from "node:path";
import type { Gone } from "./gone.ts";
import type { Item } from "./item.ts";
import type { Entry, Manifest, NewEntry } from "./manifest.ts";
import { hashOf } from "./walk-folder.ts";

/** A file that has another name now; `documentId` gets it. */
export type Rename = { item: Item; from: Entry; entry: NewEntry };

export type Plan = {
  /** Items that are new, and such that have changed, failed or were deleted on the server. */
  load: Item[];
  replace: Item[];
  renames: Rename[];
  /** Items that are loaded, with another date of their file. */
  touched: NewEntry[];
  skipped: number;
  /** What is gone of what the command names. */
  remove: Entry[];
};

type PlanInput = { items: readonly Item[]; gone: readonly Gone[]; manifest: Manifest; missing: ReadonlySet<string> };

/** Compares what there is with what is noted. `missing`: documents that the server does not have any more. */
export async function makePlan({ items, gone, manifest, missing }: PlanInput): Promise<Plan> {
  const isThere = (entry: Entry) => entry.documentId !== undefined && !missing.has(entry.documentId);
  const plan: Plan = { load: [], replace: [], renames: [], touched: [], skipped: 0, remove: [] };
  const free = gone
    .flatMap(({ entry: { id } }) => manifest.find(id) ?? [])
    .filter((entry) => entry.state !== "removed");
  const sizes = new Set([...free, ...manifest.entries()].flatMap((entry) => (entry.hash ? sizeOf(entry) : [])));
  for (const item of items) {
    const known = manifest.find(item.id);
    const before = known?.state === "removed" ? undefined : known;
    const isLoaded = before?.state === "done" && isThere(before);
    if (isLoaded && before.fingerprint === item.fingerprint) {
      plan.skipped += 1;
      continue;
    }
    const hash = item.source.kind === "file" && sizes.has(sizeOf(item)) ? await tryHash(item.source.path) : undefined;
    if (isLoaded && hash !== undefined && before.hash === hash) {
      plan.skipped += 1;
      plan.touched.push({ ...before, fingerprint: item.fingerprint });
      continue;
    }
    const from = before ? undefined : takeSame(free, item, hash);
    if (from && isThere(from)) plan.renames.push({ item, from, entry: toRenamed(item, from) });
    else if (before && isThere(before)) plan.replace.push(item);
    else plan.load.push(item);
  }
  const asked = new Set(gone.filter(({ isAskedFor }) => isAskedFor).map(({ entry }) => entry.id));
  plan.remove = free.filter(({ id }) => asked.has(id));
  return plan;
}

const sizeOf = ({ fingerprint }: { fingerprint: string }) => fingerprint.split(":", 1)[0] ?? "";

/** A file that cannot be read has none; its loading says so. */
const tryHash = (path: string) => hashOf(path).catch(() => undefined);

/** Takes what is gone and has the content of an item, rather of the same name. */
function takeSame(free: Entry[], item: Item, hash: string | undefined): Entry | undefined {
  if (hash === undefined) return undefined;
  const same = free.filter((entry) => entry.hash === hash);
  const taken = same.find((entry) => basename(entry.id) === basename(item.id)) ?? same[0];
  if (taken) free.splice(free.indexOf(taken), 1);
  return taken;
}

/** The entry of a renamed file. Where its type may be another one, or it is not loaded yet, it is read again. */
function toRenamed({ id, file, glob, fingerprint }: Item, from: Entry): NewEntry {
  const isKept = from.state === "done" && extname(from.id).toLowerCase() === extname(id).toLowerCase();
  return { ...from, id, file, glob, fingerprint, state: isKept ? "done" : "failed" };
}
