import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { isStoreUnavailable } from "../../src/store/store-errors.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { hostPid } from "../support/service-pids.ts";
import { tenantOf } from "../support/tenant-of.ts";
import {
  chatModel,
  condition,
  openWorkflowHarness,
  stepsOf,
  type WorkflowHarness,
} from "../support/workflow-harness.ts";
import { seededRandom } from "../trials/bench/measure.ts";

const runCount = 300;
/** Chooses the workers that are killed. */
const seed = 1;
const env = { JOB_LEASE_MS: "1000", RECONCILE_EVERY_MS: "300", STORE_TIMEOUT_MS: "2000" };

describe("runs of workflows while things break", function () {
  this.timeout(120_000);
  let harness: WorkflowHarness;
  const workers: HostProcess[] = [];
  before(async () => {
    harness = await openWorkflowHarness({ services: "private", workers: false, env });
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await harness.close();
  });
  const startWorker = async () => void workers.push(await startProcess("workers/main.ts", harness.test.env));
  const hook = (step: string) => ({
    type: "webhook",
    url: `${harness.site.origin}/effect`,
    method: "POST",
    body: { run: "{{ run.runId }}", step },
    retry: { attempts: 5, backoffMs: 50 },
  });
  const completion = {
    type: "ai_completion",
    model: chatModel,
    prompt: "{{ input.n }}",
    retry: { attempts: 5, backoffMs: 50 },
  };
  /** While the store is away nothing can be asked of it. */
  const asked = async <T>(question: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await question();
    } catch (error) {
      if (isStoreUnavailable(error)) return undefined;
      throw error;
    }
  };

  /** A worker that was killed may have hosted the services, which then move: it is asked until it is done. */
  const flush = () =>
    pollUntil(
      () =>
        harness.test.platform.redis.producer.flushall().then(
          () => true,
          () => false,
        ),
      { timeoutMs: 15_000, what: "Redis to be flushed" },
    );

  it(`every one of 300 ends, each step is recorded once, and each webhook has one effect by its key (seed ${seed})`, async () => {
    const { model, site, member, admin, test } = harness;
    model.play(async ({ input }) => ({ text: `answer ${input}` }));
    site.on("/effect", (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end("{}"));
    const steps = [
      hook("a"),
      completion,
      condition("input.n % 3 == 0", [hook("b")], [completion]),
      hook("c"),
      condition("input.n % 10 == 0", [{ type: "human_approval", assigneeRole: "admin" }], [hook("d")]),
      completion,
    ];
    const workflowId = await harness.create(steps);
    await Promise.all([startWorker(), startWorker()]);
    const runs: string[] = [];
    for (let n = 0; n < runCount; n += 20) {
      const some = Array.from({ length: 20 }, (_, k) => harness.start(workflowId, { n: n + k }));
      runs.push(...(await Promise.all(some)));
    }
    const tenantId = await tenantOf(test);
    const { store } = test.platform;
    const open = () => asked(() => store.jobs.countOpen(tenantId, 1_000));
    let isOver = false;
    const approve = async () => {
      while (!isOver) {
        const pending = (await member.get("/workflows/approvals?limit=200")).at("data") as
          | { approvalId: string }[]
          | undefined;
        for (const { approvalId } of pending ?? []) {
          await admin.post(`/workflows/approvals/${approvalId}/decide`, { decision: "approved" });
        }
        await delay(50);
      }
    };
    const random = seededRandom(seed);
    let kills = 0;
    const killNow = async () => {
      const worker = workers.splice(Math.floor(random() * workers.length), 1)[0];
      await Promise.all([worker?.kill(), startWorker()]);
      kills += 1;
    };
    const approving = approve();
    try {
      let faults = 0;
      await pollUntil(
        async () => {
          const left = await open();
          if (left === 0) return true;
          if (left !== undefined && left < runCount * 0.8 && faults === 0) {
            await flush();
            faults = 1;
          }
          if (left !== undefined && left < runCount * 0.5 && faults === 1 && !process.env.MONGODB_URL) {
            process.kill(await hostPid(test.platform.config.dataDir), "SIGKILL");
            faults = 2;
          }
          if (kills < 8) await killNow();
          return false;
        },
        { timeoutMs: 90_000, everyMs: 200, what: "the end of all runs" },
      );
    } finally {
      isOver = true;
      await approving;
    }
    expect(kills).to.equal(8);

    const keysOf = new Map<string, Set<string>>();
    for (const { body, headers } of site.requests) {
      const { run, step } = JSON.parse(body) as { run: string; step: string };
      const keys = keysOf.get(`${run} ${step}`) ?? new Set();
      keysOf.set(`${run} ${step}`, keys.add(String(headers["idempotency-key"])));
    }
    for (const [n, runId] of runs.entries()) {
      const run = await member.get(`/workflows/${workflowId}/runs/${runId}`);
      expect(run.at("status"), run.text).to.equal("completed");
      expect(run.at("output")).to.equal(`answer ${n}`);
      const paths = stepsOf(run).map(({ path }) => path);
      expect(new Set(paths).size, "each step once").to.equal(paths.length);
      expect(paths).to.have.lengthOf(8);
      const hooks = ["a", ...(n % 3 === 0 ? ["b"] : []), "c", ...(n % 10 === 0 ? [] : ["d"])];
      for (const step of hooks) {
        expect(keysOf.get(`${runId} ${step}`)?.size, `keys of ${step}`).to.equal(1);
        keysOf.delete(`${runId} ${step}`);
      }
    }
    expect([...keysOf.keys()], "effects that no run should have had").to.deep.equal([]);
  });

  it("an approval whose time passes while everything is down is expired at once", async () => {
    if (workers.length === 0) await startWorker();
    const workflowId = await harness.create([
      { type: "human_approval", assigneeRole: "admin", timeoutMs: 1_500 },
      completion,
    ]);
    const runId = await harness.start(workflowId, { n: 1 });
    const run = await harness.reach(workflowId, runId, "awaiting_approval");
    const expiresAt = Date.parse(run.string("awaiting.expiresAt"));
    await Promise.all(workers.splice(0).map((worker) => worker.kill()));
    await flush();
    await pollUntil(() => Date.now() > expiresAt + 200, { everyMs: 50 });
    const read = await harness.member.get(`/workflows/${workflowId}/runs/${runId}`);
    expect(read.at("status"), "though no worker has looked").to.equal("expired");
    const path = `/workflows/approvals/${run.string("awaiting.approvalId")}/decide`;
    const late = await pollUntil(async () => {
      const answer = await harness.admin.post(path, { decision: "approved" });
      return answer.status === 503 ? undefined : answer;
    });
    expect(late.status, "the time counts, not the sweep").to.equal(409);
    await startWorker();
    const ended = await harness.reach(workflowId, runId, "expired", "completed");
    expect(ended.at("status")).to.equal("expired");
  });
});
