import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Setup } from "./read-setup.ts";
import { type Task, toSettings } from "./scripted-model.ts";

/** Longest run of a client, in ms. */
const RUN_TIMEOUT_MS = 120_000;

export type ClientRun = { output: string; edited: string; seconds: number };

/**
 * Sets a client up in a home folder of its own and types its commands in the folder of the file. It is stopped, with all that
 * it started, when it takes too long. All but this machine is behind a proxy.
 */
export async function runClient(options: {
  folder: string;
  setup: Setup;
  task: Task;
  bin: string;
  key: string;
  proxyUrl: string;
}): Promise<ClientRun> {
  const { folder, setup, task, bin, key, proxyUrl } = options;
  const home = join(folder, "home");
  for (const [path, text] of Object.entries(setup.files)) {
    const file = join(home, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  await mkdir(dirname(task.path), { recursive: true });
  await writeFile(task.path, toSettings(task, "1.0"));
  const startedAt = performance.now();
  const child = spawn("bash", ["-euo", "pipefail", "-c", setup.commands], {
    cwd: dirname(task.path),
    detached: true, // a process group of its own, to stop all of it
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: `${bin}:${process.env.PATH}`,
      HOME: home,
      KEY: key,
      HTTP_PROXY: proxyUrl,
      HTTPS_PROXY: proxyUrl,
      NO_PROXY: "127.0.0.1,localhost",
    },
  });
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece: Buffer) => void pieces.push(piece));
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // the group has ended
    }
  };
  const timer = setTimeout(end, RUN_TIMEOUT_MS);
  await new Promise((resolve, reject) => child.once("exit", resolve).once("error", reject));
  clearTimeout(timer);
  end();
  const seconds = (performance.now() - startedAt) / 1_000;
  return { output: Buffer.concat(pieces).toString("utf8"), edited: await readFile(task.path, "utf8"), seconds };
}
