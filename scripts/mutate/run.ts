import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "../bench/measure.ts";
import type { Area } from "./areas.ts";
import { applyMutant, type Mutant, makeMutants } from "./make-mutants.ts";
import { makeSandbox, type Outcome, type Sandbox } from "./sandbox.ts";

/** A survivor that breaks no promise: its file, its line of source, its change, and why. */
export type Accepted = { file: string; source: string; change: string; why: string };
export type Result = { mutant: Mutant; outcome: Outcome; why?: string };

/** A run with a mutant may take this much longer than one without: a factor, and ms on top. */
const [SLOWER, MORE_MS] = [4, 30_000];

/** A mutant's change on one line, as people read it and as `accepted.json` names it. */
export function changeOf({ from, to }: Mutant): string {
  return to === "" || to === ";" ? `without \`${from}\`` : `\`${from}\` → \`${to.trim()}\``;
}

/**
 * Runs an area's tests once as they are, then once with each mutant of its files, in `jobs` copies of the project at a time.
 * @throws Error when the tests fail as they are.
 */
export async function mutateArea(options: {
  root: string;
  area: Area;
  /** Which mutants of a file are tried. */
  pick(mutants: readonly Mutant[]): readonly Mutant[];
  accepted: readonly Accepted[];
  jobs: number;
  onResult(result: Result, left: number): void;
}): Promise<Result[]> {
  const { root, area } = options;
  const folder = await mkdtemp(join(tmpdir(), "switchyard-mutate-"));
  try {
    const texts = new Map<string, string>();
    for (const file of area.files) texts.set(file, await readFile(join(root, file), "utf8"));
    const todo = [...texts].flatMap(([file, text]) => options.pick(makeMutants(file, text)));
    if (todo.length === 0) return [];
    const names = Array.from({ length: Math.min(options.jobs, todo.length) }, (_, n) => join(folder, String(n)));
    const sandboxes = await Promise.all(names.map((name) => makeSandbox(root, name)));
    const limitMs = await timeOf(sandboxes, area.tests);
    const results: Result[] = [];
    const work = async (sandbox: Sandbox) => {
      for (let mutant = todo.shift(); mutant; mutant = todo.shift()) {
        const text = texts.get(mutant.file) ?? "";
        await sandbox.write(mutant.file, applyMutant(text, mutant));
        const outcome = await sandbox.test(area.tests, limitMs);
        await sandbox.write(mutant.file, text);
        const result = { mutant, outcome, ...findReason(options.accepted, mutant) };
        results.push(result);
        options.onResult(result, todo.length);
      }
    };
    await Promise.all(sandboxes.map(work));
    return results;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** The same `most` of a list for the same seed, in its order. */
export function sample<T>(list: readonly T[], { most, seed }: { most: number; seed: number }): T[] {
  const random = seededRandom(seed);
  const ranked = list.map((item, at) => ({ item, at, rank: random() })).sort((a, b) => a.rank - b.rank);
  return ranked
    .slice(0, most)
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** The time that is left to a run with a mutant, in ms. */
async function timeOf(sandboxes: readonly Sandbox[], tests: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const outcomes = await Promise.all(sandboxes.map((sandbox) => sandbox.test(tests, 3_600_000)));
  const bad = outcomes.find(({ end }) => end !== "passed");
  if (bad) throw new Error(`The tests fail without any mutant: ${"test" in bad ? bad.test : bad.end}`);
  return (performance.now() - startedAt) * SLOWER + MORE_MS;
}

function findReason(accepted: readonly Accepted[], mutant: Mutant): { why?: string } {
  const found = accepted.find(
    ({ file, source, change }) => file === mutant.file && source === mutant.source && change === changeOf(mutant),
  );
  return found ? { why: found.why } : {};
}
