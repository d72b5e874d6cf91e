import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { makePace } from "../../src/isolation/pace.ts";
import { Rescheduled, Suspended } from "../../src/jobs/reschedule.ts";
import type { WorkContext } from "../../src/jobs/work.ts";
import { AppError } from "../../src/lib/errors.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { startTracing } from "../../src/observe/start-tracing.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import type { ShellDeps } from "../../workers/hold-lease.ts";
import type { LoneJob, LoneOutcome } from "../../workers/run-alone.ts";
import type { StopReason } from "../../workers/verdict.ts";
import { makeScriptedJobs, type Script, scriptedQueue } from "../support/scripted-queue.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { startTraceCollector } from "../support/trace-collector.ts";
import { takeTurn } from "../support/worker-turn.ts";

const farMs = 60_000;
/** Work of this time, in ms, makes its tenant one that did much of late. */
const PAST_EFFORT_MS = 600;

describe("the shell in which a worker runs a job", () => {
  const jobs = makeScriptedJobs();
  let test: TestPlatform;
  let tenantId: string;
  before(async () => {
    test = await startPlatform({ workers: false, extra: [jobs.work] });
    tenantId = await tenantOf(test);
  });
  after(() => test.close());

  const recordOf = async (jobId: string) => {
    const record = await test.platform.store.jobs.findById(jobId);
    return record ?? expect.fail(`there is no record of ${jobId}`);
  };
  const submit = async (script: Script, fields: Partial<JobRecord> = {}) => {
    const { _id: jobId } = await jobs.submit(test.platform, tenantId, script);
    await test.platform.store.jobs.change({ jobId, from: ["queued"] }, { $set: { lastEventId: 0, ...fields } });
    return jobId;
  };
  /** A turn of a job: what BullMQ is left with, the record then, what was logged, and when the turn began, in ms. */
  const turn = async (jobId: string, more: Partial<ShellDeps> & { data?: unknown } = {}) => {
    const { data, ...shell } = more;
    const logged: { level: number; msg: string }[] = [];
    const destination = { write: (line: string) => void logged.push(JSON.parse(line)) };
    const logger = makeLogger({ level: "trace", name: "test", destination });
    const began = Date.now();
    const deps = { works: [jobs.work], platform: { ...test.platform, logger }, ...shell };
    const left = await takeTurn(test.platform, { queue: scriptedQueue, jobId, data }, deps);
    const warnings = logged.filter(({ level }) => level >= 40).map(({ msg }) => msg);
    return { left, record: await recordOf(jobId), warnings, began };
  };
  /** Puts something in the place of a function for as long as `work` takes. */
  const replaced = async <K extends string, F, R>(owner: Record<K, F>, name: K, by: F, work: () => Promise<R>) => {
    const original = owner[name];
    owner[name] = by;
    try {
      return await work();
    } finally {
      owner[name] = original;
    }
  };
  const rejectWith = (error: Error) => () => Promise.reject(error);
  const storeAway = new MongoNetworkError("connect ECONNREFUSED");
  const dropped = "the job was taken by another worker; this attempt's outcome is dropped";
  const throwing = (error: unknown) => async () => {
    throw error;
  };
  /** Stops the job as its worker does, and then throws what it was given, or the signal's reason. */
  const stopped =
    (reason: StopReason, running: ShellDeps["running"], error?: unknown): Script =>
    async ({ jobId, signal }) => {
      running.get(jobId)?.(reason);
      throw error ?? signal.reason;
    };

  it("leaves BullMQ nothing of a job that has ended, and gives the work what it needs", async () => {
    let seen: WorkContext | undefined;
    const claimed: string[] = [];
    const running: ShellDeps["running"] = new Map();
    const jobId = await submit(async (context) => {
      seen = context;
      await context.step({ event: "counted" });
      await context.progress({ stage: "counting", done: 1, total: 4 });
      return { answer: 42 };
    });
    const { left, record } = await turn(jobId, { onClaimed: () => void claimed.push(jobId), running });
    expect(left).to.deep.equal({ end: "done" });
    expect(record).to.deep.include({ status: "completed", attempts: 1, result: { answer: 42 } });
    expect(record.progress.total).to.equal(4);
    expect(seen).to.include({ tenantId, jobId, recordId: jobId, isLastAttempt: false });
    expect(seen?.logger.bindings()).to.deep.include({ jobId, tenantId, queue: "scripted" });
    expect([claimed, running.size]).to.deep.equal([[jobId], 0]);
    expect((await turn(jobId)).left, "a second BullMQ job of it").to.deep.equal({ end: "done" });
  });

  it("brings a job back when its work asks for it, or fails it, and logs unexpected errors", async () => {
    const running: ShellDeps["running"] = new Map();
    const transient = new AppError("provider_failed", "No.", { retryable: true, retryAfterMs: farMs });
    const unexpected = "a job threw unexpectedly";
    const unwritten = "the job's writes were not taken; it is tried again later";
    type Case = [
      Script,
      end: string,
      status: string,
      { attempts?: number; waitMs?: number; logs?: string[]; before?: Partial<JobRecord> },
    ];
    const cases: Record<string, Case> = {
      rescheduled: [throwing(new Rescheduled(farMs)), "later", "awaiting", { attempts: 0, waitMs: farMs }],
      "its turn over": [throwing(new Rescheduled(farMs, "queued")), "later", "queued", { attempts: 0, waitMs: farMs }],
      "rescheduled when stopped": [stopped("cancelled", running, new Rescheduled(farMs)), "done", "cancelled", {}],
      suspended: [throwing(new Suspended(async () => false)), "done", "awaiting", { attempts: 0 }],
      "suspended too late": [throwing(new Suspended(async () => true)), "later", "queued", { attempts: 0 }],
      "suspended when stopped": [
        stopped("cancelled", running, new Suspended(async () => true)),
        "done",
        "cancelled",
        {},
      ],
      "transient failure": [throwing(transient), "later", "queued", { waitMs: farMs }],
      "last failure": [throwing(transient), "failed", "failed", { attempts: 3, before: { failures: 2, attempts: 2 } }],
      "last but one": [
        throwing(transient),
        "later",
        "queued",
        { attempts: 2, waitMs: farMs, before: { failures: 1, attempts: 1 } },
      ],
      "unexpected failure": [throwing(new TypeError("?")), "later", "queued", { logs: [unexpected], waitMs: 10 }],
      "store away": [throwing(storeAway), "later", "queued", { attempts: 0, waitMs: 500, logs: [unwritten] }],
      shutdown: [stopped("shutdown", running), "later", "queued", { attempts: 0 }],
      "shutdown that reads as an unexpected failure": [
        stopped("shutdown", running, new TypeError("?")),
        "later",
        "queued",
        { attempts: 0 },
      ],
      cancelled: [stopped("cancelled", running), "done", "cancelled", {}],
      fenced: [stopped("fenced", running), "done", "running", { logs: [dropped] }],
    };
    for (const [name, [script, end, status, { attempts = 1, waitMs = 0, logs = [], before = {} }]] of Object.entries(
      cases,
    )) {
      const { left, record, warnings, began } = await turn(await submit(script, before), { running });
      expect([left.end, record.status, record.attempts], name).to.deep.equal([end, status, attempts]);
      expect(warnings, name).to.deep.equal(logs);
      if (left.end === "later") {
        expect(left.at, name).to.be.within(began + waitMs, Date.now() + waitMs * 2);
        expect(record.notBefore?.getTime() ?? left.at, name).to.equal(left.at);
      }
      if (left.end === "failed") expect([left.reason, record.error?.code]).to.deep.equal(["No.", "provider_failed"]);
      expect(running.size, name).to.equal(0);
    }
  });

  it("says to the work which attempt is the last", async () => {
    for (const [failures, isLast] of [
      [0, false],
      [1, false],
      [2, true],
    ] as const) {
      const script: Script = async ({ isLastAttempt }) => isLastAttempt;
      expect((await turn(await submit(script, { failures, attempts: failures }))).record.result).to.equal(isLast);
    }
  });

  it("leaves a suspended job alone that another has taken, or resumed", async () => {
    const { claims } = test.platform.jobs;
    const asked: boolean[] = [];
    const taken = await submit(async ({ jobId }) => {
      await test.platform.store.jobs.change({ jobId, from: ["running"] }, { $set: { "lease.token": "another's" } });
      throw new Suspended(async () => asked.push(true) > 0);
    });
    const lost = await turn(taken);
    expect([lost.left.end, lost.record.status, asked]).to.deep.equal(["done", "running", []]);
    const resumed = await submit(async ({ jobId }) => {
      throw new Suspended(async () => (await claims.resume(jobId)) !== null);
    });
    const again = await turn(resumed);
    expect([again.left.end, again.record.status]).to.deep.equal(["done", "queued"]);
  });

  it("cancels a suspended job whose cancellation came just before", async () => {
    const jobId = await submit(async ({ jobId: own }) => {
      await test.platform.store.jobs.change(
        { jobId: own, from: ["running"] },
        { $set: { cancelRequestedAt: new Date() } },
      );
      throw new Suspended(async () => false);
    });
    const first = await turn(jobId);
    expect([first.left.end, first.record.status]).to.deep.equal(["later", "queued"]);
    expect((await turn(jobId)).record.status).to.equal("cancelled");
  });

  const lateEnds: Record<string, Script> = {
    result: async () => "late",
    error: throwing(new AppError("unavailable", "It is late.", { retryable: true })),
    "failure of the store": throwing(new MongoNetworkError("away")),
    suspension: throwing(new Suspended(async () => true)),
  };
  for (const [what, end] of Object.entries(lateEnds)) {
    it(`drops the ${what} of a job that another has, and notes that it was no crash`, async () => {
      const jobId = await submit(async (context) => {
        await test.platform.store.jobs.change({ jobId, from: ["running"] }, { $set: { "lease.token": "another's" } });
        return end(context);
      });
      const { left, record, warnings } = await turn(jobId);
      expect(left.end).to.equal("done");
      expect(record).to.include({ status: "running", overtaken: 1 });
      expect(record.result).to.equal(undefined);
      expect(warnings.at(-1)).to.equal(dropped);
      const lease = record.lease ?? expect.fail("it has a lease");
      const early = await turn(jobId);
      expect(early.left, "while the other has it").to.deep.equal({ end: "later", at: lease.expiresAt.getTime() + 200 });
    });
  }

  it("looks at a job again when it may be taken", async () => {
    const [far, past] = [new Date(Date.now() + farMs), new Date(0)];
    const cases: [Partial<JobRecord>, at: Date | undefined][] = [
      [{ notBefore: far }, far],
      [{ notBefore: past }, undefined],
      [{}, undefined],
    ];
    for (const [fields, at] of cases) {
      const jobId = await submit(async () => "never", fields);
      // Others took it and gave it back in between.
      const { left, began } = await replaced(
        test.platform.store.jobs,
        "take",
        async () => null,
        () => turn(jobId),
      );
      if (left.end !== "later") return expect.fail(left.end);
      if (at) expect(left.at).to.equal(at.getTime() + 200);
      else expect(left.at).to.be.within(began + 200, Date.now() + 200);
    }
    const left = await takeTurn(test.platform, { queue: scriptedQueue, jobId: "job_none", data: {} });
    expect(left, "a job without a record").to.deep.equal({ end: "done" });
  });

  it("waits for a store that takes no writes, and hides no other failure", async () => {
    const jobId = await submit(async () => "once");
    const { jobs: store } = test.platform.store;
    const { left, record, warnings, began } = await replaced(store, "take", rejectWith(storeAway), () => turn(jobId));
    expect(record.status).to.equal("queued");
    expect(warnings).to.deep.equal(["the job's writes were not taken; it is looked at again"]);
    expect(left.end === "later" && left.at).to.be.within(began + 500, Date.now() + 1_000);
    const broken = await replaced(store, "take", rejectWith(new TypeError("a mistake")), () =>
      turn(jobId).catch(String),
    );
    expect(broken).to.equal("TypeError: a mistake");
    expect(await turn(jobId, { works: [] }).catch(String)).to.match(/^TypeError: No work/);
  });

  it("fails a job with a payload that is not the queue's, and says to operators where", async () => {
    for (const [data, place, param] of [
      [{ v: 2 }, "v", "v"],
      ["text", "its top", ""],
    ] as const) {
      const { left, record } = await turn(await submit(async () => "never"), { data });
      expect(left).to.deep.equal({ end: "failed", reason: `invalid payload at ${place}` });
      expect(record.error).to.include({ code: "invalid_request", param });
    }
  });

  it("leaves a job unclaimed until its tenant may begin one more, and to others when the worker closes", async () => {
    const pace = makePace();
    pace.begins("other");
    const { signal } = new AbortController();
    await pace.share(tenantId, signal, () => delay(PAST_EFFORT_MS));
    const enter = () => pace.enterJob(tenantId, scriptedQueue.name, signal);
    const [leave] = await Promise.all([enter(), enter(), enter(), enter()]);
    const [first, second] = [await submit(async () => ({})), await submit(async () => ({}))];
    const closing = new AbortController();
    const turns = [first, second].map((jobId) => turn(jobId, { pace, closing }));
    expect((await recordOf(first)).attempts).to.equal(0);
    leave?.();
    expect((await turns[0])?.left).to.deep.equal({ end: "done" });
    expect((await turns[1])?.left, "when the first has left its place").to.deep.equal({ end: "done" });
    await Promise.all([enter()]);
    const third = await submit(async () => ({}));
    const put = turn(third, { pace, closing });
    closing.abort();
    expect((await put).left.end).to.equal("later");
    expect((await recordOf(third)).status).to.equal("queued");
  });

  it("gives up a job that was lost ten times, whether or not there are processes for single jobs", async () => {
    const shared = "The job ended its worker again and again.";
    for (const [fields, status] of [
      [{ attempts: 9 }, "completed"],
      [{ attempts: 10 }, "failed"],
      [{ attempts: 12, failures: 1, overtaken: 2 }, "completed"],
    ] as const) {
      const { left, record } = await turn(await submit(async () => "well", fields));
      expect(record.status).to.equal(status);
      if (left.end === "failed") expect([left.reason, record.error?.code]).to.deep.equal([shared, "internal"]);
    }
  });

  it("gives a process to a job that was lost twice; while there is none it runs beside others, or waits", async () => {
    const cases: [Partial<JobRecord>, busy: number, how: string][] = [
      [{ attempts: 1 }, 0, "beside others"],
      [{ attempts: 2 }, 0, "alone"],
      [{ attempts: 2 }, 1, "alone"],
      [{ attempts: 2 }, 2, "beside others"],
      [{ attempts: 3 }, 2, "beside others"],
      [{ attempts: 4 }, 1, "alone"],
      [{ attempts: 4 }, 2, "later"],
      [{ attempts: 2, failures: 1 }, 0, "beside others"],
      [{ attempts: 2, overtaken: 1 }, 0, "beside others"],
    ];
    for (const [fields, busy, how] of cases) {
      let lone: LoneJob | undefined;
      const runAlone = async (job: LoneJob): Promise<LoneOutcome> => {
        lone = job;
        return { kind: "ended" };
      };
      const jobId = await submit(async () => "well", fields);
      const alone = new Set(Array.from({ length: busy }, (_, n) => `job_${n}`));
      const { left, record, began } = await turn(jobId, { runAlone, alone });
      const name = `${JSON.stringify(fields)}, ${busy} busy`;
      expect(lone ? "alone" : record.status === "completed" ? "beside others" : left.end, name).to.equal(how);
      if (lone) expect(lone).to.deep.equal({ queue: scriptedQueue.name, jobId, timeoutMs: scriptedQueue.timeoutMs });
      if (how !== "beside others") expect([record.status, record.attempts]).to.deep.equal(["queued", fields.attempts]);
      if (left.end === "later") expect(left.at).to.be.within(began + 500, Date.now() + 1_000);
      expect(alone.size).to.equal(busy);
    }
  });

  it("goes by how the process for a single job has ended", async () => {
    const { claims } = test.platform.jobs;
    const at = Date.now() + farMs;
    const crash = "The job ended every worker process that ran it, at last one that it had for itself.";
    const cases: [LoneOutcome, end: string, status: string, begin: boolean][] = [
      [{ kind: "ended" }, "done", "running", true],
      [{ kind: "ended", delayUntil: at }, "later", "running", true],
      [{ kind: "not-begun" }, "later", "queued", false],
      [{ kind: "crashed" }, "failed", "failed", true],
    ];
    for (const [outcome, end, status, begin] of cases) {
      const running: ShellDeps["running"] = new Map();
      const alone = new Set<string>();
      const runAlone = async ({ jobId: id }: LoneJob, signal: AbortSignal) => {
        expect([...alone], "others that ask see it").to.deep.equal([id]);
        expect(begin ? (await claims.claim(id, "child"))?.record._id : id, "it is the process's to take").to.equal(id);
        running.get(id)?.("shutdown");
        expect(signal.aborted, "it is asked to give the job back").to.equal(true);
        return outcome;
      };
      const { left, record, began } = await turn(await submit(async () => "never", { attempts: 2 }), {
        runAlone,
        alone,
        running,
      });
      expect([left.end, record.status], outcome.kind).to.deep.equal([end, status]);
      if (left.end === "later") {
        if ("delayUntil" in outcome) expect(left.at).to.equal(at);
        else expect(left.at).to.be.within(began + 500, Date.now() + 1_000);
      }
      if (left.end === "failed") {
        expect(left.reason).to.equal(crash);
        expect(record.error).to.deep.include({ code: "internal", message: crash });
      }
      expect([running.size, alone.size]).to.deep.equal([0, 0]);
    }
    const { jobs: store } = test.platform.store;
    const cancelled = await submit(async () => "never", { attempts: 2 });
    const runAlone = async ({ jobId }: LoneJob): Promise<LoneOutcome> => {
      await (jobId === cancelled ? test.platform.jobs.cancel(tenantId, jobId) : claims.claim(jobId, "another"));
      return { kind: "crashed" };
    };
    expect((await turn(cancelled, { runAlone })).record.status, "one that had ended").to.equal("cancelled");
    const taken = await submit(async () => "never", { attempts: 2 });
    const { payload: data } = await recordOf(taken);
    const job = { queue: scriptedQueue, jobId: taken, data };
    // Nobody had it when it was looked for, and another has it now.
    await replaced(
      store,
      "findById",
      async () => null,
      () => takeTurn(test.platform, job, { works: [jobs.work], runAlone }),
    );
    expect((await recordOf(taken)).status).to.equal("running");
  });

  it("runs a job as a part of the trace that submitted it, in which only failures are errors", async () => {
    const collector = await startTraceCollector();
    const { logger } = test.platform;
    const config = { ...test.platform.config.tracing, endpoint: collector.url };
    const tracing = await startTracing({ config, process: "worker", logger });
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const parentSpanId = "b7ad6b7169203331";
    const fields = { trace: `00-${traceId}-${parentSpanId}-01` };
    const scripts: [Script, failure: string | undefined][] = [
      [async () => "well", undefined],
      [throwing(new Rescheduled(farMs)), undefined],
      [throwing(new Suspended(async () => false)), undefined],
      [throwing(new AppError("source_unreadable", "That is no PDF.")), "source_unreadable"],
      [throwing(new TypeError("a caller's text")), "unexpected"],
    ];
    const jobIds: string[] = [];
    try {
      for (const [script] of scripts) {
        const jobId = await submit(script, fields);
        await turn(jobId);
        jobIds.push(jobId);
      }
    } finally {
      await tracing.close();
      await collector.close();
    }
    const spans = collector.spans.filter(({ name }) => name === "scripted process");
    const consumer = 5; // in OTLP
    for (const [at, [, failure]] of scripts.entries()) {
      expect(spans[at]).to.deep.include({ traceId, parentSpanId, kind: consumer, isError: failure !== undefined });
      expect(spans[at]?.attributes).to.deep.equal({
        ...{ "messaging.system": "bullmq", "messaging.operation.type": "process" },
        ...{ "messaging.destination.name": "scripted", "messaging.message.id": jobIds[at] },
        ...{ "switchyard.tenant_id": tenantId, "switchyard.attempt": 1 },
        ...(failure === undefined ? {} : { "error.type": failure }),
      });
    }
  });
});
