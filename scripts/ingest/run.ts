import { askToRemove, planLine, sayDone, sayPlan } from "./account.ts";
import { carryOut } from "./carry-out.ts";
import { connect, Refusal } from "./connect.ts";
import { findItems } from "./find-items.ts";
import { findGone } from "./gone.ts";
import { findMissing, settleGone } from "./look-up.ts";
import { openManifest } from "./manifest.ts";
import { makePlan } from "./plan.ts";
import { realignLists } from "./realign-lists.ts";
import { STOPPED, stopOnSignal } from "./stop-on-signal.ts";

export type Options = {
  url: string;
  key?: string;
  collection?: string;
  manifest: string;
  concurrency: number;
  requireComplete?: boolean;
  prune?: boolean;
  yes?: boolean;
  dryRun?: boolean;
  json?: boolean;
};

/**
 * Loads what the arguments name, as far as it is not loaded, and with `prune` removes what is gone. Returns the exit code.
 * @throws Refusal when the call cannot work as it is.
 */
export async function ingest(what: readonly string[], options: Options): Promise<number> {
  const { key, collection, requireComplete, concurrency, dryRun = false, json: isJson = false } = options;
  const startedAt = performance.now();
  const mustAsk = options.prune === true && !options.yes && !dryRun;
  if (mustAsk && process.stdin.isTTY !== true)
    throw new Refusal("--prune asks before it removes anything: without a terminal, say --yes.");
  if (!key && !dryRun)
    throw new Refusal("No API key was given: name one by --key or in KEY. `npm start` prints the first one.");
  const { items, ...found } = await findItems(what);
  const url = options.url.replace(/\/+$/, "");
  const target = collection === undefined ? url : `${url}#${collection}`;
  const manifest = openManifest(options.manifest, target, { isReadOnly: dryRun });
  const stopping = stopOnSignal();
  const { signal } = stopping;
  try {
    const to = { url, collection, requireComplete, manifest, path: options.manifest };
    const client = key ? await connect({ ...to, key }) : undefined;
    realignLists(manifest, items);
    const gone = await findGone(manifest.entries(), { items, found });
    const goneEntries = gone.map(({ entry }) => entry);
    if (client && !dryRun) await settleGone({ client, manifest, signal }, goneEntries);
    const concerned = [...items, ...goneEntries].flatMap(({ id }) => manifest.find(id) ?? []);
    const loaded = concerned.flatMap(({ state, documentId }) => (state === "done" && documentId ? documentId : []));
    const missing = client ? await findMissing({ client, signal }, loaded) : new Set<string>();
    const plan = await makePlan({ items, gone, manifest, missing });
    const scene = { items, found, plan, isPruning: options.prune === true, isJson };
    if (!isJson) for (const note of [...found.notes, planLine(scene)]) console.log(note);
    if (dryRun || !client) return sayPlan(scene);
    const isPruning =
      scene.isPruning &&
      (!mustAsk ||
        (await askToRemove(
          plan.remove.map(({ id }) => id),
          signal,
        )));
    const deps = { client, manifest, stopping, concurrency, isQuiet: isJson };
    const done = await carryOut(deps, plan, isPruning);
    return sayDone(scene, done, Number(((performance.now() - startedAt) / 1_000).toFixed(1)));
  } catch (error) {
    if (error === signal.reason) return STOPPED; // nothing is under way yet
    throw error;
  } finally {
    stopping.release();
    manifest.close();
  }
}
