import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { startFakeBatches } from "../support/fake-provider/batch-server.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { isWhole, toReport } from "./chaos/report.ts";
import { runBeside } from "./upgrade/beside.ts";
import { checkUpgrade } from "./upgrade/check.ts";
import { fillOldRelease } from "./upgrade/fill.ts";
import { checkOut, NoOldRelease, startRelease } from "./upgrade/old-release.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const ownerKey = `sk_${"Ab3".repeat(10)}Zz`;

/**
 * `npm run upgrade-check`: fills a data folder by an earlier release, kills that with SIGKILL while work is under way, and
 * opens the folder with this checkout. With `--beside` the release before and this checkout work on one store under load instead,
 * and one of them is ended first, and in a second run the other. Exit code 0 when everything is kept, 1 when not, 2 when the
 * earlier release cannot be had.
 */
const program = new Command("upgrade-check")
  .description("open data of an earlier release with this one, or run both at once, and check that everything is there")
  .option("--revision <commit>", "the earlier release (540eecf, with --beside a9a2b54)")
  .option("--beside <minutes>", "run both at once for so long", Number)
  .option("--keep", "leave the folders behind")
  .parse();
const {
  beside,
  keep = false,
  revision = beside === undefined ? "540eecf" : "a9a2b54",
} = program.opts<{ revision?: string; beside?: number; keep?: boolean }>();

try {
  const isKept = await withDisposables(async (disposables) => {
    const folder = await mkdtemp(join(tmpdir(), "switchyard-upgrade-"));
    if (!keep) disposables.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
    const old = join(folder, "old");
    console.log(`checking out ${revision} …`);
    await checkOut({ root, revision, folder: old });
    const isKept =
      beside === undefined ? await openData({ folder, old, disposables }) : await runBoth({ folder, old, beside });
    await disposables.close();
    return isKept;
  });
  process.exit(isKept ? 0 : 1);
} catch (error) {
  console.error(error instanceof NoOldRelease ? error.message : error);
  process.exit(error instanceof NoOldRelease ? 2 : 1);
}

/** Whether everything in data of the earlier release is kept. */
async function openData({ folder, old, disposables }: { folder: string; old: string; disposables: Disposables }) {
  const chats = await startFakeProvider();
  disposables.add(() => chats.close());
  const batches = await startFakeBatches();
  disposables.add(() => batches.close());
  const dataDir = join(folder, "data");
  const env = {
    DATA_DIR: dataDir,
    PORT: "0",
    METRICS_PORT: "0",
    BOOTSTRAP_API_KEY: ownerKey,
    OPENAI_BASE_URL: chats.url,
    ANTHROPIC_BASE_URL: batches.origin,
    ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
    BATCH_COLLECT_MS: "200",
    BATCH_POLL_MS: "500",
    JOB_LEASE_MS: "2000",
    RECONCILE_EVERY_MS: "500",
    LOG_LEVEL: "error",
  };
  console.log(`filling ${dataDir} by it, and killing it …`);
  const earlier = await startRelease(old, env);
  disposables.add(() => earlier.killAll());
  const filled = await fillOldRelease(earlier, { ownerKey, chats, batches });
  console.log("opening that with this checkout …\n");
  const present = await startRelease(root, env);
  disposables.add(() => present.killAll());
  const findings = await checkUpgrade({ url: present.url, dataDir, ownerKey, chats, batches, filled });
  for (const { promise, found, isKept } of findings) console.log(`${isKept ? "ok  " : "LOST"} ${promise}: ${found}`);
  return findings.every((one) => one.isKept);
}

/** Whether everything ends once while both releases run, whichever of them is ended first. */
async function runBoth({ folder, old, beside }: { folder: string; old: string; beside: number }) {
  let isKept = true;
  for (const leaving of ["earlier", "present"] as const) {
    console.log(`\nboth for ${beside} minutes; then the ${leaving} release ends first`);
    const options = { earlier: old, present: root, leaving, besideMs: beside * 60_000, folder: join(folder, leaving) };
    const outcome = await runBeside({ ...options, say: (text) => console.error(text) });
    console.log(`\n${toReport(outcome)}`);
    isKept &&= isWhole(outcome);
  }
  return isKept;
}
