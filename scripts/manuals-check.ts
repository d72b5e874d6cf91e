import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { Command } from "commander";
import { loadConfig } from "../src/config.ts";
import { withDisposables } from "../src/disposables.ts";
import { startFakeProvider } from "../test/support/fake-provider/server.ts";
import { type DemoClient, makeClient } from "./demo/client.ts";
import { loadDocuments } from "./demo/load-documents.ts";
import { fetchPackages, NoPackages, readManual } from "./manuals/fetch-packages.ts";
import { type Manual, manuals, others, placeOf } from "./manuals/questions.ts";
import { ideasOfQuestions, measureRecall } from "./manuals/recall.ts";
import { makeScriptedJudge } from "./manuals/scripted-judge.ts";
import { runStack } from "./start/run-stack.ts";

const modes = ["hybrid", "lexical", "vector"] as const;
/** Results of a query, and the place up to which an answer counts as found. */
const TOP_K = 20;
const FOUND_WITHIN = 5;
/** What is measured is the order of results, not time: a busy machine shall not end it. */
const patient = { STORE_TIMEOUT_MS: "60000", PARSE_TIMEOUT_MS: "600000" };
/** All manuals wait for two workers; on a busy machine the longest takes minutes. */
const LOAD_TIMEOUT_MS = 1_800_000;

/**
 * `npm run manuals-check`: loads ten PDF manuals of Debian packages, asks two questions about each, and shows at which place
 * the passage that answers is. Then it asks fifty questions of users, whose recall is measured in each mode and with a judge
 * that reranks. Exit code 0 when the default mode has each of the twenty among the first five, before and after other
 * documents were deleted, and the recall of the fifty is enough; 1 when not; 2 when the packages cannot be had.
 */
const program = new Command("manuals-check")
  .description("ask questions about ten real PDF manuals of Debian packages")
  .option("--folder <path>", "keep the packages here, and use those that are here; default: a temporary folder")
  .parse();
const { folder } = program.opts<{ folder?: string }>();

try {
  process.exitCode = (await withDisposables(check)) ? 0 : 1;
} catch (error) {
  console.error(error instanceof NoPackages ? error.message : error);
  process.exitCode = error instanceof NoPackages ? 2 : 1;
}

async function check(disposables: Parameters<Parameters<typeof withDisposables>[0]>[0]): Promise<boolean> {
  const scratch = await mkdtemp(join(tmpdir(), "switchyard-manuals-"));
  disposables.add(() => rm(scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
  const packages = resolve(folder ?? join(scratch, "packages"));
  await mkdir(packages, { recursive: true });
  console.log("downloading the packages of the manuals …");
  await fetchPackages([...new Set([...manuals, ...others].map((manual) => manual.package))], packages);

  const config = loadConfig({ ...process.env, DATA_DIR: join(scratch, "data"), PORT: "0", WORKERS: "2" });
  const judge = await startFakeProvider();
  disposables.add(() => judge.close());
  judge.setDefault(makeScriptedJudge(ideasOfQuestions));
  const env = { ...patient, PORT: "0", RATE_LIMIT_RPM: "100000", FETCH_ALLOW_ORIGINS: judge.origin };
  const stack = await runStack(config, { say: () => undefined, env });
  disposables.add(() => stack.close());
  const client = makeClient(stack.url, stack.apiKey);
  const load = async (some: readonly Omit<Manual, "questions">[]) => {
    const files = some.map(async (one) => ({
      name: basename(one.path, ".gz"),
      bytes: await readManual(packages, one),
    }));
    const loaded = await loadDocuments(client, await Promise.all(files), { timeoutMs: LOAD_TIMEOUT_MS });
    return loaded.map(({ job }) => job.result?.documentId ?? "");
  };
  const passing = await load(others);
  const documentIds = await load(manuals);
  const all = await report("with all documents", client, manuals);
  for (const id of passing) await client.remove(id);
  const later = await report(`after ${passing.length} other documents were deleted`, client, manuals);
  const isRecalled = await measureRecall(client, await client.addReranker(judge.url));
  const half = manuals.length / 2;
  for (const id of documentIds.slice(0, half)) await client.remove(id);
  const last = await report(`after the first ${half} manuals were deleted too`, client, manuals.slice(half));
  await disposables.close();
  return all && later && isRecalled && last;
}

/** Asks all questions in each mode and prints the places; returns whether the default mode has found all answers. */
async function report(title: string, client: DemoClient, asked: readonly Manual[]): Promise<boolean> {
  const found = Object.fromEntries(modes.map((mode) => [mode, 0]));
  console.log(`\n${title}: place of the first passage that answers\n`);
  console.log(`  ${"manual".padEnd(26)}${modes.map((mode) => mode.padStart(9)).join("")}  question`);
  for (const { path, questions } of asked) {
    for (const question of questions) {
      const places: string[] = [];
      for (const mode of modes) {
        const place = placeOf(await client.query(question.ask, TOP_K, mode), question);
        if (place > 0 && place <= FOUND_WITHIN) found[mode] = (found[mode] ?? 0) + 1;
        places.push((place === 0 ? `>${TOP_K}` : String(place)).padStart(9));
      }
      console.log(`  ${basename(path, ".gz").padEnd(26)}${places.join("")}  ${question.ask}`);
    }
  }
  const count = asked.flatMap(({ questions }) => questions).length;
  const shares = modes.map((mode) => `${mode} ${found[mode]}`).join(", ");
  console.log(`\n  among the first ${FOUND_WITHIN} of ${count}: ${shares}`);
  return found.hybrid === count;
}
