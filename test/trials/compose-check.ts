import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { withDisposables } from "../../src/lib/disposables.ts";
import { listen } from "../../src/lib/listen.ts";
import { type Engine, findEngine } from "./compose/engine.ts";
import { startLoad } from "./compose/load.ts";

const folder = fileURLToPath(new URL("../..", import.meta.url));
const project = "switchyard-check";
const key = `sk_${"k".repeat(32)}`;
/** What the image may add to Node's, in bytes. */
const MAX_LAYERS = 220e6;
const LOAD_MS = 10_000;
const up = ["up", "--wait", "--wait-timeout", "900", "--scale", "worker=4"];

const containersSchema = z.array(z.object({ Service: z.string(), ExitCode: z.number() }));

/**
 * `npm run compose-check`: builds the image, starts the compose stack with four workers, loads documents, kills each service in
 * turn by SIGKILL, stops and starts the stack: every document that was accepted is there once, API and workers end with code 0.
 * Where no engine runs it says so and ends with code 0.
 */
async function check(): Promise<void> {
  await withDisposables(async (disposables) => {
    const scratch = await mkdtemp(join(tmpdir(), "switchyard-compose-"));
    disposables.add(() => rm(scratch, { recursive: true, force: true }));
    const port = await freePort();
    const file = join(scratch, "env");
    const env = { ...makeSettings(), PORT: port };
    await writeFile(
      file,
      Object.entries(env).map(([name, value]) => `${name}=${value}\n`),
      { mode: 0o600 },
    );
    const engine = findEngine({ folder, project, env: { ...env, ENV_FILE: file } });
    if (!engine) {
      console.log("compose-check did not run: neither docker nor podman runs here with compose.");
      return disposables.close();
    }
    disposables.add(async () => void (await engine.compose("down", "--volumes", "--timeout", "10")));
    await engine.compose("build");
    await checkSize(engine);
    await engine.compose(...up);
    console.log("the stack is healthy, with four workers");
    const ending = new AbortController();
    disposables.add(() => ending.abort());
    const load = startLoad({ url: `http://127.0.0.1:${port}`, key, signal: ending.signal });
    for (const service of ["worker", "api", "redis", "mongodb"]) {
      await delay(LOAD_MS);
      await engine.compose("kill", "--signal", "SIGKILL", service);
      await engine.compose(...up);
      console.log(`${service} was killed, and the stack is healthy again`);
    }
    await delay(LOAD_MS);
    console.log(`${await load.stop()} documents were accepted, and each is there once`);
    await engine.compose("stop");
    for (const { Service, ExitCode } of readContainers(await engine.compose("ps", "--all", "--format", "json"))) {
      if ((Service === "api" || Service === "worker") && ExitCode !== 0)
        throw new Error(`${Service} ended with code ${ExitCode} at SIGTERM`);
    }
    await engine.compose(...up);
    await load.expectKept();
    console.log("API and workers ended with code 0 at SIGTERM, and after the next start everything is there");
    await disposables.close();
  });
}

function makeSettings() {
  const secret = (bytes: number) => randomBytes(bytes).toString("hex");
  return {
    MONGODB_PASSWORD: secret(16),
    REDIS_PASSWORD: secret(16),
    GRAFANA_PASSWORD: secret(16),
    MASTER_KEY: randomBytes(32).toString("base64"),
    ADMIN_TOKEN: secret(16),
    BOOTSTRAP_API_KEY: key,
    RATE_LIMIT_RPM: "100000",
  };
}

/** Docker prints a list, or an object a line, by its version. */
function readContainers(printed: string) {
  const text = printed.startsWith("[") ? printed : `[${printed.split("\n").join(",")}]`;
  return containersSchema.parse(JSON.parse(text));
}

/** @throws Error when what we add to Node's image is above 220 MB. */
async function checkSize({ run }: Engine): Promise<void> {
  const dockerfile = await readFile(join(folder, "Dockerfile"), "utf8");
  const [, node] = /^ARG NODE_VERSION=(.+)$/m.exec(dockerfile) ?? [];
  const base = `docker.io/library/node:${node}-bookworm-slim`;
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(await readFile(join(folder, "package.json"), "utf8")));
  await run("pull", "--quiet", base);
  const sizeOf = async (image: string) => Number(await run("image", "inspect", "--format", "{{.Size}}", image));
  const layers = (await sizeOf(`switchyard:${version}`)) - (await sizeOf(base));
  if (layers > MAX_LAYERS) throw new Error(`the image adds ${Math.round(layers / 1e6)} MB to Node's`);
  console.log(`the image adds ${Math.round(layers / 1e6)} MB to Node's`);
}

async function freePort(): Promise<string> {
  const server = createServer();
  const { port } = new URL(await listen(server, { host: "127.0.0.1", port: 0, setting: "PORT" }));
  await once(server.close(), "close");
  return port;
}

await check();
