import { execFile } from "node:child_process";
import { chmod, cp, mkdir, readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { promisify } from "node:util";
import type { Stage } from "./dockerfile.ts";

const run = promisify(execFile);
/** Longest time for one RUN, in ms. */
const RUN_TIMEOUT_MS = 10 * 60_000;

export type Image = { stage: Stage /** Folder of the last WORKDIR. */; workdir: string };

/**
 * Does the steps of a Dockerfile's stages, each stage in a folder of its own in `scratch`, and makes the last one read-only.
 * @throws Error of a step that fails.
 */
export async function buildImage(options: {
  project: string;
  scratch: string;
  stages: readonly Stage[];
  path: string;
}) {
  const { project, scratch, stages, path } = options;
  const ignored = await readIgnored(project);
  const rootOf = (index: number) => join(scratch, `stage-${index}`);
  let workdir = "/";
  for (const [index, stage] of stages.entries()) {
    const inStage = (inner: string) => join(rootOf(index), posix.resolve(workdir, inner));
    workdir = "/";
    await mkdir(rootOf(index), { recursive: true });
    for (const step of stage.steps) {
      if (step.kind === "workdir") {
        workdir = step.path;
        await mkdir(inStage("."), { recursive: true });
      } else if (step.kind === "run") {
        // The user's environment: npm finds its registry and cache there.
        const env = { ...process.env, PATH: path, ...stage.env };
        await run("sh", ["-c", step.command], { cwd: inStage("."), env, timeout: RUN_TIMEOUT_MS });
      } else {
        const from = stages.findIndex(({ name }) => name === step.from);
        const root = step.from === undefined ? project : rootOf(from);
        for (const source of step.source) {
          const target = step.target.endsWith("/") ? join(step.target, posix.basename(source)) : step.target;
          const isKept = (file: string) => root !== project || !ignored.includes(file.slice(project.length + 1));
          await cp(join(root, source), inStage(target), { recursive: true, filter: isKept, verbatimSymlinks: true });
        }
      }
    }
  }
  const last = stages.length - 1;
  const stage = stages[last];
  if (stage === undefined) throw new Error("the Dockerfile has no stage");
  await run("chmod", ["-R", "a-w,a+rX", rootOf(last)]);
  await chmod(scratch, 0o755); // the unprivileged user passes through it
  return { stage, workdir: join(rootOf(last), workdir) } satisfies Image;
}

/** What .dockerignore takes out of the folders that it lets through. */
async function readIgnored(project: string): Promise<string[]> {
  const lines = (await readFile(join(project, ".dockerignore"), "utf8")).split("\n");
  return lines.filter((line) => line !== "" && line !== "*" && !line.startsWith("!"));
}
