import { type ChildProcess, execFile, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Longest time for a process to be ready, in ms. */
const START_TIMEOUT_MS = 60_000;

/** This clone cannot show the earlier release, or its dependencies cannot be installed. */
export class NoOldRelease extends Error {
  override name = "NoOldRelease";
}

/**
 * Checks a revision out into `folder` and installs what it depends on: this checkout's packages, and from the registry those
 * that are other ones now. @throws NoOldRelease with what to do.
 */
export async function checkOut({ root, revision, folder }: { root: string; revision: string; folder: string }) {
  await run("git", ["-C", root, "cat-file", "-e", `${revision}^{commit}`]).catch(() => {
    throw new NoOldRelease(
      `This clone does not hold ${revision}, as a shallow one does not: run git fetch --unshallow.`,
    );
  });
  await mkdir(folder, { recursive: true });
  const archive = spawn("git", ["-C", root, "archive", revision], { stdio: ["ignore", "pipe", "inherit"] });
  const unpack = spawn("tar", ["-x", "-C", folder], { stdio: [archive.stdout, "inherit", "inherit"] });
  const [code] = await once(unpack, "exit");
  if (code !== 0) throw new NoOldRelease(`${revision} could not be unpacked.`);
  // Hard links: npm replaces the packages that it changes, but writes its own list in place.
  await run("cp", ["-al", join(root, "node_modules"), join(folder, "node_modules")]);
  await rm(join(folder, "node_modules/.package-lock.json"), { force: true });
  const install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  await run("npm", install, { cwd: folder }).catch((error: Error) => {
    throw new NoOldRelease(`The packages of ${revision} could not be installed: ${error.message}`);
  });
}

export type Release = {
  url: string;
  /** Ends the worker at once, so that what is submitted from now on waits. */
  killWorker(): Promise<void>;
  /** Ends every process at once, those of the store and of Redis too, as a power cut does. */
  killAll(): Promise<void>;
};

/** Starts the API and a worker of the product in a folder, on the data folder that `env` names. */
export async function startRelease(
  folder: string,
  env: Record<string, string> & { DATA_DIR: string },
): Promise<Release> {
  const start = async (script: string) => {
    const child = fork(join(folder, script), {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    const ended = once(child, "exit", { signal }).then(([code]) => {
      throw new Error(`${join(folder, script)} ended with code ${code} before it was ready`);
    });
    const [ready] = await Promise.race([once(child, "message", { signal }), ended]);
    ended.catch(() => undefined); // it ends sooner or later
    return { child, ready: ready as { url?: string } };
  };
  const api = await start("api/server.ts");
  const worker = await start("workers/main.ts");
  const kill = async (child: ChildProcess) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  return {
    url: api.ready.url ?? "",
    killWorker: () => kill(worker.child),
    async killAll() {
      const services = await processesOf(env.DATA_DIR);
      await Promise.all([kill(api.child), kill(worker.child)]);
      // Those that restarted in between are there at the second look.
      for (const pid of [...services, ...(await processesOf(env.DATA_DIR))]) killQuietly(pid);
    },
  };
}

/** The processes that are started with a data folder in their arguments: the embedded services. */
async function processesOf(dataDir: string): Promise<number[]> {
  const { stdout } = await run("ps", ["-A", "-o", "pid=,args="]);
  return stdout
    .split("\n")
    .filter((line) => line.includes(dataDir))
    .map((line) => Number.parseInt(line, 10))
    .filter((pid) => pid !== process.pid);
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has ended
  }
}
