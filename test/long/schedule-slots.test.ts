import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** By hand: `SLOTS_SCHEDULES=50 SLOTS_MS=300000 npm run test:file -- test/long/schedule-slots.test.ts`. */
const SCHEDULES = Number(process.env.SLOTS_SCHEDULES ?? 10);
const DURATION_MS = Number(process.env.SLOTS_MS ?? 40_000);
const WORKERS = 4;
/** Longer than a process may say nothing of a firing that it has taken, in ms. */
const FROZEN_MS = 33_000;

type Firing = {
  firingId: string;
  slotAt: string;
  status: string;
  reason?: string;
  job?: { jobId: string; status: string };
};

describe("schedules at every second, while their workers are killed and frozen", function () {
  this.timeout(2 * DURATION_MS + 300_000);
  let test: TestPlatform;
  let client: ApiClient;
  const workers: HostProcess[] = [];

  before(async () => {
    test = await startPlatform({
      services: "private",
      workers: false,
      env: { JOB_LEASE_MS: "3000", RECONCILE_EVERY_MS: "500" },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(async () => {
    for (const worker of workers) worker.child.kill("SIGCONT");
    await Promise.all(workers.map((worker) => worker.kill()));
    await test.close();
  });

  const startWorker = () => startProcess("workers/main.ts", test.env);
  const all = async <T>(path: string): Promise<T[]> => {
    const found: T[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await client.get(`${path}?limit=200${cursor === "" ? "" : `&cursor=${cursor}`}`);
      const { data, nextCursor } = page.body as { data: T[]; nextCursor: string | null };
      found.push(...data);
      cursor = nextCursor;
    }
    return found;
  };

  /** Kills one worker after the other and starts another in its place, and freezes others, until the time is over. */
  async function disturb(until: number): Promise<void> {
    for (let turn = 0; Date.now() < until; turn += 1) {
      const at = turn % WORKERS;
      const worker = workers[at];
      if (!worker) throw new Error("there is no worker to disturb");
      if (turn % 2 === 0) {
        await worker.kill();
        workers[at] = await startWorker();
      } else {
        worker.child.kill("SIGSTOP");
        const frozenMs = turn === 1 ? FROZEN_MS : 4_000;
        void delay(frozenMs).then(() => worker.child.kill("SIGCONT"));
        if (turn > 1) await delay(frozenMs);
      }
      if (turn === 2) await test.platform.redis.producer.flushall();
      await delay(2_000);
    }
    for (const worker of workers) worker.child.kill("SIGCONT");
  }

  it("start each slot once, and leave none out", async () => {
    // biome-ignore lint/suspicious/noThenProperty: a condition's branch
    const steps = [{ type: "condition", expression: "true", then: [] }];
    const workflowId = (await client.post("/workflows", { name: "Each second", steps })).string("workflowId");
    for (let at = 0; at < WORKERS; at += 1) workers.push(await startWorker());
    const ids: string[] = [];
    for (let at = 0; at < SCHEDULES; at += 1) {
      const body = { name: `s${at}`, cron: "* * * * * *", overlap: "queue", target: { workflowId } };
      ids.push((await client.post("/schedules", body)).string("scheduleId"));
    }
    await disturb(Date.now() + DURATION_MS);
    for (const id of ids) {
      const body = { name: "over", cron: "* * * * * *", overlap: "queue", target: { workflowId }, enabled: false };
      await client.request("PUT", `/schedules/${id}`, { body });
    }
    let slots = 0;
    const jobs = new Set<string>();
    for (const id of ids) {
      let firings: Firing[] = [];
      const isOver = async () => {
        firings = await all<Firing>(`/schedules/${id}/firings`);
        return firings.every(({ status, job }) => status === "started" && job?.status === "completed") ? true : null;
      };
      await pollUntil(isOver, { timeoutMs: DURATION_MS + 90_000, everyMs: 1_000, what: "the end" }).catch(() => {
        const states = firings.map(({ status, reason, job }) => `${status} ${reason ?? ""} ${job?.status ?? ""}`);
        expect.fail(
          `${id}: ${JSON.stringify(
            Object.fromEntries(
              Map.groupBy(states, String)
                .entries()
                .map(([state, { length }]) => [state, length]),
            ),
          )}`,
        );
      });
      const times = firings.map(({ slotAt }) => Date.parse(slotAt)).sort((a, b) => a - b);
      for (const [at, time] of times.slice(1).entries()) expect(time - (times[at] ?? 0), id).to.equal(1_000);
      expect(times.length).to.be.greaterThan(DURATION_MS / 1_000 - 5);
      slots += times.length;
      for (const { job } of firings) jobs.add(job?.jobId ?? "");
    }
    expect(jobs.size, "a job for each slot").to.equal(slots);
    const runs = await all<{ jobId: string; status: string }>(`/workflows/${workflowId}/runs`);
    expect(runs.length, "a run for each slot").to.equal(slots);
    expect(new Set(runs.map(({ jobId }) => jobId)).size).to.equal(slots);
  });
});
