import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { loadConfig } from "../../src/config/config.ts";
import { AppError, ConfigError } from "../../src/lib/errors.ts";
import { listen } from "../../src/lib/listen.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { connectStore } from "../../src/store/connect.ts";
import { openRedis } from "../../src/store/redis/redis.ts";
import { bareEnvironment } from "../support/compile-cache.ts";

const START = fileURLToPath(new URL("../../scripts/start.ts", import.meta.url));

/** Runs `npm start`'s script with only these settings until it ends. */
async function start(env: Record<string, string>) {
  const child = spawn(process.execPath, [START], { env: { ...bareEnvironment, ...env } });
  const [printed, complaints, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  return { code, printed, lines: complaints.trim().split("\n") };
}

/** The message of a rejected promise of ours. */
async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("it was not refused"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof AppError || error instanceof ConfigError) return error.message;
  throw error;
}

function settingsRejection(env: Record<string, string>): string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n").slice(1);
    throw error;
  }
  return [];
}

describe("a start that fails", function () {
  this.timeout(60_000);
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "switchyard-start-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("names every setting that is wrong, in words", () => {
    const wrong: Record<string, [string, string]> = {
      PORT: ["abc", "must be a whole number from 0 to 65535"],
      WORKERS: ["-1", "must be a whole number from 0 to 64"],
      WORKER_CONCURRENCY: ["0", "must be a number above 0 and at most 64"],
      OTEL_TRACES_SAMPLER_ARG: ["2", "must be a number from 0 to 1"],
      LOG_LEVEL: ["loud", "must be one of trace, debug, info, warn, error, fatal, silent"],
      EDGE_BASE_URL: ["example.com", "must be an http or https URL"],
      STORE_COMPLETION_CONTENT: ["yes", "must be true or false"],
      ADMIN_TOKEN: ["short", "must have at least 12 characters"],
      MONGODB_URL: ["localhost:27017", "must be a connection string, as mongodb://127.0.0.1:27017"],
      REDIS_URL: [
        "localhost",
        "must be a URL, as redis://127.0.0.1:6379 or redis+sentinel://host-a,host-b/primary, or the path of a socket",
      ],
    };
    const lines = settingsRejection(Object.fromEntries(Object.entries(wrong).map(([name, [value]]) => [name, value])));
    expect(lines).to.have.members(Object.entries(wrong).map(([name, [, words]]) => `  ${name}: ${words}`));
  });

  it("warns about a variable that nearly has the name of a setting", async () => {
    const { code, lines } = await start({ WORKRES: "3", PORT: "abc" });
    expect(code).to.equal(2);
    expect(lines[0]).to.equal("WORKRES is no setting. Did you mean WORKERS?");
  });

  it("reports a data folder that is a file", async () => {
    const file = join(folder, "file");
    await writeFile(file, "");
    const { code, lines } = await start({ DATA_DIR: file, PORT: "0" });
    expect(lines).to.deep.equal([`DATA_DIR: ${file} cannot be used as a folder (EEXIST).`]);
    expect(code).to.equal(1);
  });

  it("reports a taken port before anything is started", async () => {
    const other = createServer();
    const { port } = new URL(await listen(other, { host: "127.0.0.1", port: 0, setting: "PORT" }));
    const { code, lines, printed } = await start({ DATA_DIR: join(folder, "taken"), PORT: port });
    other.close();
    expect(lines).to.deep.equal([`HOST and PORT: 127.0.0.1:${port} cannot be used (another process listens there).`]);
    expect(code).to.equal(2);
    expect(printed).to.equal("");
  });

  it("reports a store or a Redis that cannot be reached in one sentence, without a password", async () => {
    const store = (url: string) => connectStore({ url, db: "x", timeoutMs: 5_000 });
    const redis = (url: string) => openRedis({ url, prefix: "x", logger: makeLogger({ level: "info", name: "test" }) });
    const messages = await Promise.all([
      refusal(store("mongodb://ana:secret@127.0.0.1:1/")),
      refusal(store("mongodb://127.0.0.1:1/?no=1")),
      refusal(redis("redis://:secret@127.0.0.1:1")),
      refusal(redis(join(folder, "no.sock"))),
    ]);
    expect(messages).to.deep.equal([
      "MONGODB_URL: 127.0.0.1:1 cannot be used (connection refused).",
      "MONGODB_URL: option no is not supported.",
      "REDIS_URL: 127.0.0.1:1 cannot be used (connection refused).",
      `REDIS_URL: ${join(folder, "no.sock")} cannot be used (no such socket).`,
    ]);
  });

  it("ends with the sentence of the part that could not start", async () => {
    const env = {
      DATA_DIR: join(folder, "part"),
      PORT: "0",
      REDIS_URL: "redis://127.0.0.1:1",
      MONGODB_URL: "mongodb://127.0.0.1:1",
    };
    const { code, lines, printed } = await start(env);
    expect(lines).to.deep.equal([
      "MONGODB_URL: 127.0.0.1:1 cannot be used (connection refused).",
      "Switchyard did not start.",
    ]);
    expect(code).to.equal(1);
    expect(printed).to.equal("starting the API and 2 workers …\n");
  });
});

describe("npm start", function () {
  this.timeout(60_000);

  it("stops everything when the shell between npm and itself ends by a signal", async () => {
    const folder = await mkdtemp(join(tmpdir(), "switchyard-start-"));
    const env = { DATA_DIR: join(folder, "data"), PORT: "0", METRICS_PORT: "0", WORKERS: "1" };
    const shell = spawn("sh", ["-c", `"${process.execPath}" "${START}"; true`], {
      env: { ...bareEnvironment, ...env, npm_lifecycle_event: "start" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      let printed = "";
      for await (const part of shell.stdout) {
        printed += part;
        if (printed.includes("Ctrl-C stops it.")) shell.kill("SIGTERM"); // its output ends with the last process that has it
      }
      expect(printed).to.match(/stopping …\nstopped\n$/);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
