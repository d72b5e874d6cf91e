import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { keepDoing } from "../../src/lib/keep-doing.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { openWorkflowHarness, stepsOf, type WorkflowHarness } from "../support/workflow-harness.ts";

/** Items of the list; 10,000 by hand. */
const ITEMS = Number(process.env.FOR_EACH_ITEMS ?? 400);
const WORKERS = 2;
/** How often a worker is killed, in ms, and what a worker may take of memory, in MB. */
const KILL_EVERY_MS = 1_000;
const MAX_RSS_MB = 450;

describe("a list over items while workers are killed and Redis loses everything", function () {
  this.timeout(1_800_000);
  let harness: WorkflowHarness;
  const workers: HostProcess[] = [];
  before(async () => {
    harness = await openWorkflowHarness({
      ...{ services: "private", workers: false },
      env: { JOB_LEASE_MS: "1000", RECONCILE_EVERY_MS: "300" },
    });
    harness.site.on("/effect", (_, response) => void setTimeout(() => response.writeHead(204).end(), 100));
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await harness.close();
  });

  const startWorker = async () => void workers.push(await startProcess("workers/main.ts", harness.test.env));
  const rssOf = async (pid: number) => {
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024;
  };

  it("does every item, and gives them in order", async () => {
    const workflowId = await harness.create([
      {
        ...{ type: "for_each", id: "loop", items: "input", concurrency: 50 },
        do: [
          { type: "webhook", url: `${harness.site.origin}/effect`, method: "POST", body: { n: "{{ item }}" } },
          { type: "set", id: "done", values: { n: "{{ item }}" } },
        ],
      },
    ]);
    await Promise.all(Array.from({ length: WORKERS }, startWorker));
    const runId = await harness.start(
      workflowId,
      Array.from({ length: ITEMS }, (_, n) => n),
    );
    let highestMb = 0;
    let kills = 0;
    const killing = keepDoing(
      async () => {
        const [worker] = workers.splice(0, 1);
        for (const { child } of workers) highestMb = Math.max(highestMb, await rssOf(child.pid ?? 0));
        await worker?.kill();
        kills += 1;
        await startWorker();
      },
      { everyMs: KILL_EVERY_MS, onError: () => undefined },
    );
    const path = `/workflows/${workflowId}/runs/${runId}`;
    const doneOf = async () => {
      const run = await harness.member.get(path);
      return stepsOf(run)[0] as { status: string; items?: { done: number } } | undefined;
    };
    for (const share of [0.2, 0.6]) {
      await pollUntil(
        async () => {
          const loop = await doneOf();
          return loop?.status !== "running" || (loop.items?.done ?? 0) >= ITEMS * share;
        },
        { timeoutMs: 900_000 },
      );
      if (!process.env.REDIS_URL) await harness.test.platform.redis.producer.flushall();
    }
    const run = await pollUntil(
      async () => {
        const found = await harness.member.get(path);
        return ["completed", "failed"].includes(found.string("status")) ? found : undefined;
      },
      { timeoutMs: 900_000 },
    );
    await killing.stop();
    expect(run.at("status"), run.text.slice(0, 1_000)).to.equal("completed");
    expect(run.at("output")).to.deep.equal(Array.from({ length: ITEMS }, (_, n) => ({ n })));
    const idsOf = new Map<unknown, Set<unknown>>();
    for (const { body, headers } of harness.site.requests) {
      const { n } = JSON.parse(body);
      idsOf.set(n, (idsOf.get(n) ?? new Set()).add(headers["webhook-id"]));
    }
    expect(idsOf.size, "items whose effect was asked for").to.equal(ITEMS);
    expect(
      [...idsOf.values()].every((ids) => ids.size === 1),
      "one id for each item",
    ).to.equal(true);
    expect(highestMb, "memory of a worker").to.be.below(MAX_RSS_MB);
    if (ITEMS > 1_000)
      process.stdout.write(`${JSON.stringify({ kills, highestMb, requests: harness.site.requests.length })}\n`);
  });
});
