import { fileOf } from "./gone.ts";
import type { Item } from "./item.ts";
import type { Entry, Manifest, NewEntry } from "./manifest.ts";

/**
 * Notes where the lines of JSONL stand now. Lines are known by their numbers, and one that was inserted or deleted moves all
 * below it: their documents go with them, so that none of them is made again.
 */
export function realignLists(manifest: Manifest, items: readonly Item[]): void {
  const lines = items.filter(({ source }) => source.kind === "json");
  if (lines.length === 0) return;
  const entries = Map.groupBy(manifest.entries(), fileOf);
  for (const [file, listed] of Map.groupBy(lines, (item) => item.file)) {
    const noted = (entries.get(file) ?? []).filter(({ id }) => id !== file);
    // What an earlier run left unfinished has its number only.
    if (noted.every(({ state }) => state === "done")) manifest.write(...realign(listed, noted));
  }
}

/** Each entry gets the number of a line with its content, or else one that is free by then. */
function realign(lines: readonly Item[], noted: readonly Entry[]): NewEntry[] {
  const byId = new Map(noted.map((entry) => [entry.id, entry]));
  const isAtPlace = ({ id, fingerprint }: Item) => byId.get(id)?.fingerprint === fingerprint;
  const changed = lines.filter((line) => !isAtPlace(line));
  const stays = new Set(lines.filter(isAtPlace).map(({ id }) => id));
  const others = Map.groupBy(
    noted.filter(({ id }) => !stays.has(id)),
    ({ fingerprint }) => fingerprint,
  );
  const moves = new Map(
    changed.flatMap(({ id, fingerprint }) => {
      const entry = others.get(fingerprint)?.shift();
      return entry ? [[id, entry] as const] : [];
    }),
  );
  const moved = new Set([...moves.values()].map(({ id }) => id));
  const free = [...moved].filter((id) => !moves.has(id));
  const displaced = [...moves.keys()].flatMap((id) => (moved.has(id) ? [] : (byId.get(id) ?? [])));
  return [
    ...[...moves].map(([id, entry]) => ({ ...entry, id })),
    ...free.flatMap((id, index) => {
      const [entry, former] = [displaced[index], byId.get(id)];
      if (entry) return [{ ...entry, id }];
      return former ? [{ ...former, state: "removed" as const }] : [];
    }),
  ];
}
