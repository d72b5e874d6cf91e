import { execFile, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { expect } from "chai";
import { pollUntil } from "../support/poll-until.ts";

/** How often a stack is stopped. A hundred take half an hour: `STOPS=100`. */
const STOPS = Number(process.env.STOPS ?? 9);
/** How long stacks work after their start until the last stop, in ms. */
const WORK_MS = 3_000;
/** Within this time nothing of a stack may be left, in ms: its own grace is a second, that of its host 14, that of Redis 5. */
const GRACE_MS = 30_000;
/** What is left must not come back, as from a host that was about to start it, in ms. */
const COMES_BACK_MS = 1_000;

/** What ends a stack, in turn. The group has all of its processes but Redis and its keeper. */
const stops = [
  { how: "SIGTERM to the group", signal: "SIGTERM", isGroup: true },
  { how: "SIGTERM to the parent", signal: "SIGTERM", isGroup: false },
  { how: "SIGKILL to the parent", signal: "SIGKILL", isGroup: false },
] as const;

describe("the private Redis of a stack", function () {
  this.timeout(STOPS * 90_000 + 120_000);

  it(`is gone, as all of the stack, after each of ${STOPS} stops in the states of its start and work`, async function () {
    const first = await startStack();
    const readyAfterMs = await first.ready;
    expect(await redisIn(first.dataDir), "a Redis of its own").to.have.length(1);
    await first.remove();
    const states = new Map<string, number>();
    const left: string[] = [];
    let slowestMs = 0;
    for (let n = 0; n < STOPS; n += 1) {
      const { how, ...stop } = stops[n % stops.length] ?? stops[0];
      const stack = await startStack();
      try {
        await delay(((readyAfterMs + WORK_MS) * n) / (STOPS - 1));
        const state = stack.isReady() ? "at work" : `starting, ${(await redisIn(stack.dataDir)).length} Redis`;
        states.set(state, (states.get(state) ?? 0) + 1);
        const stoppedAt = performance.now();
        stack.stop(stop);
        const about = `stop ${n}, ${how}, ${state}`;
        await pollUntil(async () => (await stack.remains()).length === 0, {
          timeoutMs: GRACE_MS,
          everyMs: 100,
          what: "the end",
        }).catch(async () => left.push(`${about}: ${await stack.remains()} left after ${GRACE_MS} ms`));
        slowestMs = Math.max(slowestMs, performance.now() - stoppedAt);
        await delay(COMES_BACK_MS);
        const back = await stack.remains();
        if (back.length > 0) left.push(`${about}: ${back} came back`);
      } finally {
        await stack.remove();
      }
    }
    const met = [...states].map(([state, times]) => `${times} ${state}`).join("; ");
    if (this.test) this.test.title += ` (${met}; the slowest took ${Math.round(slowestMs)} ms)`;
    expect(left).to.deep.equal([]);
    expect([...states.keys()]).to.include.members(["at work", "starting, 0 Redis"]);
  });
});

/** Starts the stack as `npm start` does, in a process group of its own, and gives it work as soon as it is ready. */
async function startStack() {
  const dataDir = await mkdtemp(join(tmpdir(), "switchyard-stops-"));
  const key = `sk_${"k".repeat(32)}`;
  const env = {
    ...process.env,
    DATA_DIR: dataDir,
    PORT: "0",
    WORKERS: "1",
    BOOTSTRAP_API_KEY: key,
    SHUTDOWN_GRACE_MS: "1000",
    LOG_LEVEL: "silent",
    MONGODB_URL: "",
    REDIS_URL: "",
  };
  const startedAt = performance.now();
  const child = spawn(process.execPath, ["scripts/start.ts"], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  const pid = child.pid ?? 0;
  let said = "";
  let url: string | undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    url ??= /Console {5}(\S+?),/.exec(said)?.[1];
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const work = async () => {
    for (let n = 0; !hasEnded(); n += 1) {
      const body = JSON.stringify({ content: `Document ${n} of the valve.` });
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", prefer: "respond-async" };
      await fetch(`${url}/rag/ingest`, { method: "POST", headers, body }).catch(() => undefined); // it is being stopped
      await delay(20);
    }
  };
  const untilReady = async () => {
    await pollUntil(() => url !== undefined || hasEnded(), { timeoutMs: 60_000, everyMs: 20, what: "the start" });
    void work();
    return performance.now() - startedAt;
  };
  const ready = untilReady();
  ready.catch(() => undefined); // it was not ready in time, and is stopped
  const remains = async () => [...(await groupOf(pid)), ...(await redisIn(dataDir))];
  return {
    dataDir,
    ready,
    isReady: () => url !== undefined,
    stop: ({ signal, isGroup }: { signal: NodeJS.Signals; isGroup: boolean }) =>
      process.kill(isGroup ? -pid : pid, signal),
    /** Its processes that are there, by id and name. */
    remains,
    /** Ends what is left, and removes its data. */
    async remove() {
      for (const process_ of await remains()) process.kill(Number.parseInt(process_, 10), "SIGKILL");
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

/** The processes of a group, those that have ended and were not waited for left out. */
async function groupOf(group: number): Promise<string[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pgid=,pid=,stat=,comm="]);
  return stdout.split("\n").flatMap((line) => {
    const [pgid, pid, stat = "", name] = line.trim().split(/\s+/);
    return Number(pgid) === group && !stat.startsWith("Z") ? [`${pid} ${name}`] : [];
  });
}

/** The servers of Redis that work in a data folder, also one that is no longer there. */
async function redisIn(dataDir: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      try {
        const [name, folder] = await Promise.all([readFile(`/proc/${pid}/comm`, "utf8"), readlink(`/proc/${pid}/cwd`)]);
        return name.startsWith("redis-server") && folder.startsWith(dataDir) ? [`${pid} redis-server`] : [];
      } catch {
        return []; // it has ended
      }
    }),
  );
  return found.flat();
}
