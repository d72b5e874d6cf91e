import { Command, InvalidArgumentError, Option } from "commander";
import { makeIngestClient } from "./ingest/client.ts";
import { findItems, type Problem } from "./ingest/find-items.ts";
import { isLoaded, isOfAnotherTenant, loadItems } from "./ingest/load.ts";
import { openManifest } from "./ingest/manifest.ts";
import { failureTable, showProgress, totalSize } from "./ingest/report.ts";

/** Exit codes: all is loaded; something failed; the call cannot work as it is; the user stopped it. */
const [LOADED, FAILED, REFUSED, STOPPED] = [0, 1, 2, 130];

type Options = {
  url: string;
  key?: string;
  collection?: string;
  manifest: string;
  concurrency: number;
  dryRun?: boolean;
  json?: boolean;
};

/** `npm run ingest`: loads many documents, and resumes where an earlier run of the same command stopped. */
const program = new Command("ingest")
  .description("Load files, folders, globs, URLs, lists of URLs (.txt) and JSONL into the knowledge base.")
  .argument("<what...>", "files, folders, globs, URLs, .txt files of URLs, .jsonl files of {content, title?} or {url}")
  .addOption(new Option("--url <url>", "the API").env("URL").default("http://127.0.0.1:3000"))
  .addOption(new Option("--key <key>", "an API key").env("KEY"))
  .option("--collection <name>", "the collection that the documents go to; default: `default`, or what a line names")
  .option("--manifest <file>", "where to note loaded documents; one for each tenant", ".ingest-manifest.jsonl")
  .option("--concurrency <n>", "documents at once, at most; fewer while the server says 429", toCount, 16)
  .option("--dry-run", "print what would be loaded, and load nothing")
  .option("--json", "print the account as JSON, and nothing else")
  .action(async (what: string[], options: Options) => {
    process.exitCode = await ingest(what, options);
  });

function toCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 256) return count;
  throw new InvalidArgumentError("give a number from 1 to 256");
}

async function ingest(what: readonly string[], options: Options): Promise<number> {
  const startedAt = performance.now();
  const say = (text: string) => options.json || console.log(text);
  const { items, problems, notes, passedOver } = await findItems(what);
  const url = options.url.replace(/\/+$/, "");
  const { collection } = options;
  const manifest = openManifest(options.manifest, collection === undefined ? url : `${url}#${collection}`);
  try {
    const wanted = items.filter((item) => !isLoaded(manifest, item));
    const skipped = items.length - wanted.length;
    for (const note of notes) say(note);
    const before = skipped > 0 ? `, ${skipped} loaded before` : "";
    const others = passedOver > 0 ? `, ${passedOver} of other types left out` : "";
    say(`${wanted.length} to load (${totalSize(wanted)})${before}${others}`);
    if (options.dryRun) {
      for (const { id } of wanted) say(`  ${id}`);
      return account(
        options,
        { found: items.length, loaded: 0, skipped, passedOver, wouldLoad: wanted.map(({ id }) => id) },
        problems,
      );
    }
    if (!options.key) {
      console.error("No API key was given: name one by --key or in KEY. `npm start` prints the first one.");
      return REFUSED;
    }
    const client = makeIngestClient(url, options.key, collection);
    const check = wanted.length === 0 ? { status: 200, message: "" } : await client.jobs(1);
    if (check.status !== 200) {
      console.error(
        check.status === 0 ? `There is no API at ${url}: ${check.message}` : `${url} says ${check.message}`,
      );
      return REFUSED;
    }
    if (await isOfAnotherTenant(client, manifest)) {
      console.error(
        `${options.manifest} notes documents that ${url} does not have: it was written for another data folder or tenant. Delete it, or name another one by --manifest.`,
      );
      return REFUSED;
    }
    const progress = showProgress(wanted.length, options.json === true || wanted.length === 0);
    const stopping = stopOnSignal(progress.say);
    const failures: Problem[] = [...problems];
    let [loaded, left] = [0, wanted.length];
    await loadItems(
      {
        client,
        manifest,
        concurrency: options.concurrency,
        signal: stopping.signal,
        onPace: progress.onPace,
        onEnd(item, outcome, entry) {
          if (outcome === "stopped") return;
          left -= 1;
          progress.onEnd(outcome === "failed");
          if (outcome === "done") loaded += 1;
          else failures.push({ id: item.id, reason: entry?.reason ?? "" });
        },
      },
      wanted,
    );
    progress.stop();
    stopping.release();
    const seconds = Number(((performance.now() - startedAt) / 1_000).toFixed(1));
    const facts = { found: items.length, loaded, skipped, passedOver, left, seconds, isStopped: left > 0 };
    return account(options, facts, failures);
  } finally {
    manifest.close();
  }
}

type Facts = {
  found: number;
  loaded: number;
  skipped: number;
  passedOver: number;
  left?: number;
  seconds?: number;
  isStopped?: boolean;
  wouldLoad?: string[];
};

/** Prints how it went and returns the exit code. */
function account(options: Options, facts: Facts, failures: readonly Problem[]): number {
  const code = facts.isStopped ? STOPPED : failures.length > 0 ? FAILED : LOADED;
  if (options.json) {
    console.log(JSON.stringify({ ...facts, failed: failures.length, failures }));
    return code;
  }
  if (facts.seconds !== undefined) {
    console.log(`${facts.loaded} loaded, ${failures.length} failed, ${facts.skipped} skipped in ${facts.seconds} s`);
  }
  if (failures.length > 0) console.log(`\nNot loaded:\n${failureTable(failures)}`);
  if (facts.isStopped) console.log(`\nStopped with ${facts.left} left. The same command resumes here.`);
  return code;
}

/** The first Ctrl-C (or SIGTERM) lets submitted items be noted, the second ends at once. */
function stopOnSignal(say: (text: string) => void): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(STOPPED);
    say("stopping …");
    controller.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return {
    signal: controller.signal,
    release: () => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
    },
  };
}

await program.parseAsync();
