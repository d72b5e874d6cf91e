import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type LocalStack, runStack } from "../../scripts/start/run-stack.ts";
import { loadConfig } from "../../src/config/config.ts";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startRefusingStore } from "../support/refusing-store.ts";
import { childPids, descendantPids, hostPid, isAlive, redisPid } from "../support/service-pids.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform } from "../support/start-platform.ts";

const gone = (pid: number) => pollUntil(() => !isAlive(pid), { what: `the end of process ${pid}` });

describe("the processes of one machine", function () {
  this.timeout(60_000);

  it("all end when the stack is closed, and are restarted when they are killed before", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "switchyard-stack-"));
    const said: string[] = [];
    const env = { DATA_DIR: dataDir, PORT: "0", WORKERS: "1", LOG_LEVEL: "silent", MONGODB_URL: "", REDIS_URL: "" };
    let stack: LocalStack | undefined;
    const started: number[] = [];
    const others = await childPids("embedded/host.ts"); // the run's own
    const pidsOf = async (file: string) => (await childPids(file)).filter((pid) => !others.includes(pid));
    const pidOf = async (file: string) => {
      const [pid] = await pollUntil(
        async () => {
          const pids = await pidsOf(file);
          return pids.length > 0 ? pids : null;
        },
        { what: `a process of ${file}` },
      );
      if (pid === undefined) throw new Error("unreachable");
      started.push(pid);
      return pid;
    };
    try {
      stack = await runStack(loadConfig(env), { say: (text) => said.push(text), env });
      const client = makeClient({ url: stack.url, key: stack.apiKey });
      await pidOf("embedded/host.ts");

      const api = await pidOf("api/server.ts");
      process.kill(api, "SIGKILL");
      await gone(api);
      const isBack = async () => (await fetch(`${stack?.url}/healthz`).catch(() => null))?.status === 200;
      await pollUntil(isBack, { timeoutMs: 20_000, everyMs: 50, what: "the API again" });
      expect(await pidOf("api/server.ts")).to.not.equal(api);

      const worker = await pidOf("workers/main.ts");
      process.kill(worker, "SIGKILL");
      await gone(worker);
      expect((await client.post("/rag/ingest", { content: "Who runs this?" })).status, "by the next one").to.equal(201);
      expect(await pidOf("workers/main.ts")).to.not.equal(worker);
      expect(said.filter((text) => text.includes("SIGKILL"))).to.have.lengthOf(2);
    } finally {
      await stack?.close();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
    await Promise.all(started.map(gone));
    for (const file of ["api/server.ts", "workers/main.ts", "embedded/host.ts"]) {
      expect(await pidsOf(file), file).to.deep.equal([]);
    }
  });

  it("all end when npm, which started them, ends", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "switchyard-stack-"));
    const env = { ...process.env, DATA_DIR: dataDir, PORT: "0", WORKERS: "1", MONGODB_URL: "", REDIS_URL: "" };
    const npm = spawn("npm", ["start"], { env, stdio: ["ignore", "pipe", "ignore"] });
    try {
      let said = "";
      npm.stdout.setEncoding("utf8").on("data", (text: string) => {
        said += text;
      });
      await pollUntil(() => said.includes("Ctrl-C stops it."), { timeoutMs: 40_000, what: "the start" });
      const labels = (text: string) => [...text.matchAll(/^ {2}([A-Z][\w ]*?) {2,}\S/gm)].map(([, label]) => label);
      const [sample = ""] = /^Switchyard is up\.[^`]*/m.exec(await readFile("README.md", "utf8")) ?? [];
      expect(labels(said), "as the README has it").to.deep.equal(labels(sample)).and.to.include("Console");
      expect(said).to.match(/Console {5}http:\/\/127\.0\.0\.1:\d+/);
      const files = ["scripts/start.ts", "api/server.ts", "workers/main.ts", "embedded/host.ts"];
      const started = (await Promise.all(files.map((file) => descendantPids(file, npm.pid ?? 0)))).flat();
      expect(started).to.have.length.of.at.least(4); // npm runs the first of them in a shell
      npm.kill("SIGTERM");
      await Promise.all(started.map(gone));
    } finally {
      npm.kill("SIGKILL");
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
  });

  it("end at once when the process that started them ends while they wait for the store", async () => {
    const store = await startRefusingStore();
    const test = await startPlatform({ workers: false });
    let waiting = 0;
    store.answer((body) => {
      if (!("createIndexes" in body)) return undefined;
      waiting += 1;
      return 60_000;
    });
    try {
      for (const script of ["../../api/server.ts", "../../workers/main.ts"]) {
        const MASTER_KEY = Buffer.alloc(32, 7).toString("base64");
        const env = { ...process.env, ...test.env, PORT: "0", MONGODB_URL: store.url, MASTER_KEY };
        const child = fork(fileURLToPath(new URL(script, import.meta.url)), { env, stdio: "ignore" });
        const before = waiting;
        await pollUntil(() => waiting > before, { timeoutMs: 20_000, what: `${script} at its start` });
        const ended = once(child, "exit", { signal: AbortSignal.timeout(10_000) });
        child.disconnect();
        expect((await ended)[0], script).to.equal(1);
      }
    } finally {
      await test.close();
      await store.close();
    }
  });

  it("a platform that is closed leaves neither host nor Redis behind", async function () {
    if (process.env.MONGODB_URL || process.env.REDIS_URL)
      return skipTest(this, "the services that were given are not ours to end");
    const test = await startPlatform({ services: "private" });
    const client = makeClient({ url: test.url, key: test.keys.owner });
    expect((await client.post("/rag/ingest", { content: "Closed at once." })).status).to.equal(201);
    const pids = [await hostPid(test.platform.config.dataDir), await redisPid(test)];
    await test.close();
    await Promise.all(pids.map(gone));
  });
});
