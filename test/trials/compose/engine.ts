import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

const LOOK_TIMEOUT_MS = 20_000;
/** Longest time of one command, in ms: a first build gets the base images and all packages. */
const RUN_TIMEOUT_MS = 30 * 60_000;

export type Engine = ReturnType<typeof makeEngine>;

/** The container engine of this machine that runs and has compose; undefined without one. */
export function findEngine(options: { folder: string; project: string; env: Record<string, string> }) {
  const works = (name: string, ...args: string[]) =>
    spawnSync(name, args, { stdio: "ignore", timeout: LOOK_TIMEOUT_MS }).status === 0;
  const name = ["docker", "podman"].find((each) => works(each, "info") && works(each, "compose", "version"));
  return name && makeEngine(name, options);
}

function makeEngine(
  name: string,
  { folder, project, env }: { folder: string; project: string; env: Record<string, string> },
) {
  /** Runs a command and resolves with what it prints. @throws Error when it fails, or takes longer than 30 minutes. */
  async function run(...args: string[]): Promise<string> {
    const signal = AbortSignal.timeout(RUN_TIMEOUT_MS);
    const options = { cwd: folder, env: { ...process.env, ...env }, signal };
    const child = spawn(name, args, { ...options, stdio: ["ignore", "pipe", "inherit"] });
    const [printed, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    if (code !== 0) throw new Error(`${name} ${args.join(" ")} ended with code ${code}`);
    return printed.trim();
  }
  return { name, run, compose: (...args: string[]) => run("compose", "--project-name", project, ...args) };
}
