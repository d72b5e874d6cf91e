import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

/** How long the processes of a run may take to end when they are asked to, in ms. */
const END_MS = 10_000;

/** How long a test may take that says nothing else, in ms as text: several runs share the processors. */
const HOOK_MS = "60000";

/** How the tests ended: all passed, the first that failed, or out of time. */
export type Outcome = { end: "passed" | "timeout" } | { end: "failed"; test: string };

/** A copy of the project, in which files are changed and tests are run. */
export type Sandbox = {
  write(file: string, text: string): Promise<void>;
  /** Runs test files until the first failure, for at most `limitMs`. */
  test(files: readonly string[], limitMs: number): Promise<Outcome>;
};

/** Copies all files of the project at `root` that Git does not ignore to `folder`; packages are linked. */
export async function makeSandbox(root: string, folder: string): Promise<Sandbox> {
  const listed = await promisify(execFile)("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root });
  await mkdir(folder);
  for (const file of listed.stdout.split("\n").filter(Boolean)) {
    await cp(join(root, file), join(folder, file)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error; // deleted, and still in Git's index
    });
  }
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  const temporary = join(folder, "tmp");
  return {
    write: (file, text) => writeFile(join(folder, file), text),
    async test(files, limitMs) {
      await mkdir(temporary);
      try {
        return await runTests({ folder, temporary, files, limitMs });
      } finally {
        await rm(temporary, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      }
    },
  };
}

async function runTests(run: {
  folder: string;
  temporary: string;
  files: readonly string[];
  limitMs: number;
}): Promise<Outcome> {
  const args = [
    join("node_modules", "mocha", "bin", "mocha.js"),
    "--bail",
    "--timeout",
    HOOK_MS,
    "--reporter",
    "json-stream",
    ...run.files,
  ];
  const child = spawn(process.execPath, args, {
    cwd: run.folder,
    env: { ...process.env, TMPDIR: run.temporary },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true, // it leads a group, which is ended as a whole
  });
  const closed = once(child, "close");
  let outcome: Outcome | undefined;
  const settle = (found: Outcome) => {
    if (outcome) return;
    outcome = found;
    void endGroup(child, closed);
  };
  const limit = setTimeout(() => settle({ end: "timeout" }), run.limitMs);
  createInterface({ input: child.stdout }).on("line", (line) => {
    const test = /^\["fail",\{"title":"(.*?)","fullTitle"/.exec(line)?.[1];
    if (test !== undefined) settle({ end: "failed", test });
  });
  const [code] = await closed;
  clearTimeout(limit);
  return outcome ?? (code === 0 ? { end: "passed" } : { end: "failed", test: "before the first test" });
}

/** Asks all processes of a run to end, and ends those that do not. */
async function endGroup({ pid }: ChildProcess, closed: Promise<unknown>): Promise<void> {
  if (pid === undefined) return;
  const signalGroup = (signal: NodeJS.Signals) => {
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // gone already
    }
  };
  signalGroup("SIGTERM");
  const late = setTimeout(() => signalGroup("SIGKILL"), END_MS);
  await closed;
  clearTimeout(late);
}
