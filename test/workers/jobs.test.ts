import { once } from "node:events";
import { expect } from "chai";
import { boardPath } from "../../api/operator-pages.ts";
import { AppError, unavailable } from "../../src/lib/errors.ts";
import { newId } from "../../src/lib/ids.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { pollUntil } from "../support/poll-until.ts";
import { cancelledWithinMs } from "../support/promised-times.ts";
import { makeScriptedJobs, type Script, scriptedQueue } from "../support/scripted-queue.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type BoardJob = { id: string; failedReason?: string };

describe("jobs through a queue and a worker", () => {
  const jobs = makeScriptedJobs();
  let test: TestPlatform;
  let tenantId: string;
  const submit = (script: Script) => jobs.submit(test.platform, tenantId, script);
  const end = (job: JobRecord) =>
    test.platform.jobs.wait(tenantId, job._id, { timeoutMs: 10_000, signal: new AbortController().signal });
  const untilAborted = async (aborting: AbortSignal) => {
    if (!aborting.aborted) await once(aborting, "abort");
    throw aborting.reason;
  };

  before(async () => {
    test = await startPlatform({ extra: [jobs.work], env: { JOB_LEASE_MS: "1500", RECONCILE_EVERY_MS: "300" } });
    tenantId = await test.platform.tenancy.ensureTenant("first");
  });
  after(() => test.close());

  it("runs a job once and keeps its result on the record", async () => {
    let runs = 0;
    const job = await submit(async ({ progress }) => {
      runs += 1;
      await progress({ stage: "counting", done: 1, total: 2 });
      return { answer: 42 };
    });
    expect(job.status).to.equal("queued");
    const ended = await end(job);
    expect(ended).to.include({ status: "completed", attempts: 1 });
    expect(ended.result).to.deep.equal({ answer: 42 });
    expect(ended.progress).to.deep.equal({ stage: "completed", done: 2, total: 2 });
    expect(runs).to.equal(1);
    expect(ended.lease, "the lease").to.equal(undefined);
  });

  it("accepts a job that Redis took although its answer was lost, when a worker has it", async () => {
    const { queues, jobs: all } = test.platform;
    const { add } = queues;
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    queues.add = async (...args) => {
      await add(...args);
      await begun;
      throw unavailable("The queue");
    };
    try {
      const job = await submit(async () => {
        begin();
        return "once";
      });
      expect(await end(job)).to.include({ status: "completed", attempts: 1, result: "once" });
      expect((await all.list(tenantId, { limit: 1 })).data[0]?._id).to.equal(job._id);
    } finally {
      queues.add = add;
    }
  });

  it("retries a retryable error, up to the queue's attempts, and then fails with it", async () => {
    const attempts: number[] = [];
    const job = await submit(async ({ attempt, isLastAttempt }) => {
      attempts.push(attempt);
      expect(isLastAttempt).to.equal(attempt === 3);
      throw new AppError("provider_failed", "The provider answered 500.", { retryable: true });
    });
    const ended = await end(job);
    expect(ended).to.include({ status: "failed", attempts: 3, failures: 2 });
    expect(ended.error).to.include({ code: "provider_failed", message: "The provider answered 500." });
    expect(attempts).to.deep.equal([1, 2, 3]);
  });

  it("completes when a later attempt succeeds, and shows no error then", async () => {
    const job = await submit(async ({ attempt }) => {
      if (attempt === 1) throw new AppError("unavailable", "Not yet.", { retryable: true, retryAfterMs: 50 });
      return "second";
    });
    const ended = await end(job);
    expect(ended).to.include({ status: "completed", attempts: 2, result: "second" });
    expect(ended.error).to.equal(undefined);
  });

  it("does not retry a permanent error", async () => {
    const job = await submit(async () => {
      throw new AppError("source_unreadable", "That is no PDF.");
    });
    expect(await end(job)).to.include({ status: "failed", attempts: 1 });
  });

  it("shows operators on the board which jobs failed and which did not", async () => {
    const succeeded = await submit(async () => "fine");
    const unfit = await submit(async () => {
      throw new AppError("source_unreadable", "That is no PDF.");
    });
    const exhausted = await submit(async () => {
      throw new AppError("provider_failed", "The provider answered 500.", { retryable: true });
    });
    const ends = [succeeded, unfit, exhausted];
    await Promise.all(ends.map(end));
    const authorization = "Bearer operator-token-of-the-tests";
    const shown = async (status: string) => {
      const path = `${boardPath}/api/queues?activeQueue=${scriptedQueue.name}&status=${status}&jobsPerPage=100`;
      const response = await fetch(`${test.url}${path}`, { headers: { authorization } });
      const { queues } = (await response.json()) as { queues: { name: string; jobs: BoardJob[] }[] }; // Bull Board's
      return queues.find(({ name }) => name === scriptedQueue.name)?.jobs ?? [];
    };
    const [failed, completed] = await pollUntil(async () => {
      const lists = [await shown("failed"), await shown("completed")] as const;
      const ids = lists.flat().map(({ id }) => id);
      return ends.every(({ _id }) => ids.includes(_id)) ? lists : null;
    });
    const reasons = new Map(failed.map(({ id, failedReason }) => [id, failedReason]));
    expect(reasons.get(unfit._id)).to.equal("That is no PDF.");
    expect(reasons.get(exhausted._id)).to.equal("The provider answered 500.");
    expect(completed.map(({ id }) => id)).to.include(succeeded._id);
  });

  it("keeps the text of an unexpected error from the caller", async () => {
    const job = await submit(async () => {
      throw new TypeError("secret detail of ours");
    });
    const ended = await end(job);
    expect(ended.error?.code).to.equal("internal");
    expect(JSON.stringify(ended)).to.not.include("secret detail");
  });

  it("stops an attempt that runs too long", async () => {
    const job = await submit(({ signal: aborting }) => untilAborted(aborting));
    const ended = await end(job);
    expect(ended.error?.code).to.equal("timeout");
    expect(ended.attempts).to.equal(3);
  });

  it("cancels a running job at once, and a second cancel is refused", async () => {
    let started: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (started = resolve));
    const job = await submit(async ({ signal: aborting }) => {
      started();
      await untilAborted(aborting);
    });
    await running;
    const from = performance.now();
    await test.platform.jobs.cancel(tenantId, job._id);
    expect((await end(job)).status).to.equal("cancelled");
    expect(performance.now() - from).to.be.below(cancelledWithinMs);
    const again = await test.platform.jobs.cancel(tenantId, job._id).catch((error: unknown) => error);
    expect(again).to.be.instanceOf(AppError).with.property("code", "wrong_state");
  });

  it("cancels a running job also when the announcement is lost", async () => {
    let started: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (started = resolve));
    const job = await submit(async ({ signal: aborting }) => {
      started();
      await untilAborted(aborting);
    });
    await running;
    // What the cancel writes, without its announcement over Redis.
    await test.platform.store.jobs.change(
      { jobId: job._id, from: ["running"] },
      { $set: { cancelRequestedAt: new Date() } },
    );
    expect((await end(job)).status).to.equal("cancelled");
  });

  it("fails a job whose payload is not of the queue's schema, naming the field", async () => {
    const job = await submit(async () => "never");
    const broken = { ...job, _id: newId("job"), payload: { v: 2 }, status: "queued" as const };
    await test.platform.store.jobs.insert(broken);
    await test.platform.queues.add(scriptedQueue.name, { jobId: broken._id, payload: { v: 2 }, priority: 1 });
    const ended = await end(broken);
    expect(ended.status).to.equal("failed");
    expect(ended.error).to.include({ code: "invalid_request", param: "v" });
  });

  it("takes over a job whose holder is silent, and ignores the holder's late result", async () => {
    const { claims } = test.platform.jobs;
    const job = await submit(async () => "by the living worker");
    await end(job);
    const orphan = { ...job, _id: newId("job") };
    orphan.payload = { ...job.payload, jobId: orphan._id };
    await test.platform.store.jobs.insert(orphan);
    const dead = await claims.claim(orphan._id, "a worker that dies");
    expect(dead).to.not.equal(null);
    const ended = await pollUntil(
      async () => {
        const record = await test.platform.jobs.get(tenantId, orphan._id);
        return record.status === "failed" ? record : null; // it has no script, so the living worker's try fails
      },
      { timeoutMs: 15_000, what: "the orphan's end" },
    );
    expect(ended.attempts).to.be.greaterThan(1);
    if (!dead) throw new Error("unreachable");
    const late = await claims.complete(dead.lease, "too late", { stage: "", done: 0, total: 0 });
    expect(late, "a fenced holder's result").to.equal(null);
  });

  it("runs a job once although its BullMQ job exists twice", async () => {
    let runs = 0;
    const job = await submit(async () => {
      runs += 1;
    });
    await end(job);
    await test.platform.queues.remove(scriptedQueue.name, job._id);
    await test.platform.queues.add(scriptedQueue.name, { jobId: job._id, payload: job.payload, priority: 1 });
    await pollUntil(async () => (await test.platform.queues.findLive(scriptedQueue.name, [job._id])).size === 0, {
      what: "the second BullMQ job's end",
    });
    expect(runs).to.equal(1);
  });

  it("keeps contents out of Redis: payloads hold ids only", async () => {
    const job = await submit(async () => ({ text: "the result stays in the store" }));
    await end(job);
    const keys = await test.platform.redis.producer.keys(`${test.platform.redis.prefix}:scripted:${job._id}`);
    expect(keys).to.have.lengthOf(1);
    const stored = await test.platform.redis.producer.hgetall(keys[0] ?? "");
    expect(JSON.stringify(stored)).to.not.include("the result stays");
  });
});
