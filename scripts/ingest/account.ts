import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { Done } from "./carry-out.ts";
import type { Found, Item } from "./item.ts";
import type { Plan } from "./plan.ts";
import { problemTable, totalSize } from "./report.ts";
import { STOPPED } from "./stop-on-signal.ts";
import type { Problem } from "./walk-folder.ts";

/** Exit codes: all is loaded; something failed; the call cannot work as it is. */
export const [LOADED, FAILED, REFUSED] = [0, 1, 2];

/** Rows of what is left out; `--json` has all. */
const MAX_LEFT_OUT = 50;

type Scene = { items: readonly Item[]; found: Found; plan: Plan; isPruning: boolean; isJson: boolean };

/** One line on what is to be done. */
export function planLine({ found, plan, isPruning }: Scene): string {
  const { load, replace, renames, skipped, remove } = plan;
  const parts = [
    `${load.length} to load (${totalSize(load)})`,
    replace.length > 0 && `${replace.length} to replace (${totalSize(replace)})`,
    renames.length > 0 && `${renames.length} renamed`,
    skipped > 0 && `${skipped} loaded before`,
    found.leftOut.length > 0 && `${found.leftOut.length} left out`,
    remove.length > 0 && (isPruning ? `${remove.length} to remove` : `${remove.length} deleted here (see --prune)`),
  ];
  return parts.filter((part) => part !== false).join(", ");
}

/** Prints what would be done, by name, and returns the exit code. */
export function sayPlan({ items, found, plan, isPruning, isJson }: Scene): number {
  const { problems, leftOut } = found;
  const wouldLoad = plan.load.map(({ id }) => id);
  const wouldReplace = plan.replace.map(({ id }) => id);
  const wouldRename = plan.renames.map(({ from, item }) => ({ from: from.id, to: item.id }));
  const wouldRemove = isPruning ? plan.remove.map(({ id }) => id) : [];
  if (isJson) {
    const facts = { found: items.length, loaded: 0, skipped: plan.skipped, passedOver: leftOut.length };
    const would = { wouldLoad, wouldReplace, wouldRename, wouldRemove };
    console.log(JSON.stringify({ ...facts, ...would, leftOut, failed: problems.length, failures: problems }));
  } else {
    for (const id of wouldLoad) console.log(`  load     ${id}`);
    for (const id of wouldReplace) console.log(`  replace  ${id}`);
    for (const { from, to } of wouldRename) console.log(`  rename   ${from} to ${to}`);
    for (const id of wouldRemove) console.log(`  remove   ${id}`);
    sayProblems({ leftOut, failures: problems, warnings: [] });
  }
  return problems.length > 0 ? FAILED : LOADED;
}

/** Prints how it went and returns the exit code. */
export function sayDone({ items, found, plan, isJson }: Scene, done: Done, seconds: number): number {
  const { leftOut } = found;
  const { left, loaded, renamed, removed, warnings, isStopped } = done;
  const failures = [...found.problems, ...done.failures];
  const code = isStopped ? STOPPED : failures.length > 0 ? FAILED : LOADED;
  if (isJson) {
    const facts = { found: items.length, skipped: plan.skipped, passedOver: leftOut.length, seconds };
    console.log(JSON.stringify({ ...facts, ...done, leftOut, failed: failures.length, failures }));
    return code;
  }
  const more = `${renamed.length > 0 ? `, ${renamed.length} renamed` : ""}${removed.length > 0 ? `, ${removed.length} removed` : ""}`;
  console.log(`${loaded} loaded, ${failures.length} failed, ${plan.skipped} skipped${more} in ${seconds} s`);
  sayProblems({
    leftOut,
    failures,
    warnings: warnings.map(({ id, code, message }) => ({ id, reason: `${code}: ${message}` })),
  });
  if (isStopped) console.log(`\nStopped with ${left} left. The same command resumes here.`);
  return code;
}

type Said = { leftOut: readonly Problem[]; failures: readonly Problem[]; warnings: readonly Problem[] };

function sayProblems({ leftOut, failures, warnings }: Said): void {
  if (warnings.length > 0) console.log(`\nLoaded with warnings:\n${problemTable(warnings)}`);
  if (leftOut.length > 0) console.log(`\nLeft out:\n${problemTable(leftOut.slice(0, MAX_LEFT_OUT))}`);
  if (leftOut.length > MAX_LEFT_OUT) console.log(`  and ${leftOut.length - MAX_LEFT_OUT} more, which --json names`);
  if (failures.length > 0) console.log(`\nNot loaded:\n${problemTable(failures)}`);
}

/** Asks at the terminal whether documents are to be removed. */
export async function askToRemove(ids: readonly string[], signal: AbortSignal): Promise<boolean> {
  if (ids.length === 0) return true;
  console.error(
    `These are deleted here, and are to be removed from the server:\n${ids.map((id) => `  ${id}`).join("\n")}`,
  );
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = once(terminal, "close").then(() => ""); // no answer is none
  terminal.on("SIGINT", () => process.kill(process.pid, "SIGINT")); // the terminal itself sends none while it asks
  try {
    const asked = `Remove ${ids.length === 1 ? "1 document" : `${ids.length} documents`}? [y/N] `;
    const answer = await Promise.race([terminal.question(asked, { signal }).catch(() => ""), closed]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
