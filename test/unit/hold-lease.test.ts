import { mock } from "node:test";
import { expect } from "chai";
import type { Lease } from "../../src/jobs/claim.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import type { JobProgress, JobRecord } from "../../src/store/job-record.ts";
import { holdLease, type RunningJobs, type ShellDeps } from "../../workers/hold-lease.ts";
import type { StopReason } from "../../workers/verdict.ts";

const leaseMs = 3_000;
const timeoutMs = 20_000;

/** The clock stands still until a test moves it on; a heartbeat comes each second of it. */
describe("the lease of a job that runs", () => {
  let now: number;
  beforeEach(() => {
    now = 1_000_000;
    mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
    mock.method(performance, "now", () => now);
  });
  afterEach(() => {
    mock.timers.reset();
    mock.restoreAll();
  });
  /** Time passes, in steps as small as none of the timers. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      now += 100;
      mock.timers.tick(100);
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve(); // what a heartbeat waits for
    }
  };

  /** A job that is held, in a store that answers each change with `answer`. */
  const hold = ({ from = {}, ms = leaseMs }: { from?: Partial<JobRecord>; ms?: number } = {}) => {
    const record = {
      _id: "job_1",
      lastEventId: 4,
      progress: { stage: "queued", done: 0, total: 1 },
      ...from,
    } as JobRecord;
    const lease: Lease = { jobId: record._id, token: "t" };
    const running: RunningJobs = new Map();
    const written: unknown[] = [];
    const store = { answer: async (): Promise<JobRecord | null> => record, beats: 0, announced: 0 };
    const write = (of: Lease, ...what: unknown[]) => {
      expect(of).to.equal(lease);
      written.push(what.length === 1 ? what[0] : what);
      return store.answer();
    };
    const claims = {
      heartbeat(of: Lease) {
        expect(of).to.equal(lease);
        store.beats += 1;
        return store.answer();
      },
      progress: write,
      step: write,
      announce(of: JobRecord) {
        expect(of).to.equal(record);
        store.announced += 1;
      },
    };
    const logger = makeLogger({ level: "silent", name: "test" });
    const deps = { platform: { jobs: { claims }, logger }, running, leaseMs: ms } as unknown as ShellDeps; // all that it uses
    return { held: holdLease(deps, { record, lease, timeoutMs }), record, running, written, store };
  };
  const gone = () => Promise.reject(new Error("the store does not answer"));
  /** The code that the work's signal has for it, and whether the job may be tried again. */
  const reasonOf = ({ signal }: { signal: AbortSignal }) =>
    signal.aborted && [signal.reason.code, signal.reason.retryable];
  const codeOf = (write: Promise<void>) =>
    write.then(
      () => "done",
      (error: { code: string }) => error.code,
    );

  it("is renewed three times in its length, and every 1.5 s of a long one, until it is released", async () => {
    const [short, long] = [hold(), hold({ ms: 60_000 })];
    await pass(6_000);
    expect([short.store.beats, long.store.beats]).to.deep.equal([6, 4]);
    for (const { held, running } of [short, long]) {
      expect(reasonOf(held)).to.equal(false);
      expect([...running.keys()]).to.deep.equal(["job_1"]);
      held.release();
      expect(running.size).to.equal(0);
    }
    await pass(timeoutMs);
    expect([short.store.beats, long.store.beats, short.held.stopReason()]).to.deep.equal([6, 4, undefined]);
  });

  it("is announced once for a job that does not end in a moment", async () => {
    const [short, long] = [hold(), hold()];
    await pass(100);
    short.held.release();
    await pass(timeoutMs - 200);
    expect([short.store.announced, long.store.announced]).to.deep.equal([0, 1]);
    long.held.release();
  });

  it("ends the work for the first reason to stop, which says whether the job may be run again", () => {
    const reasons: Record<StopReason, [code: string, retryable: boolean]> = {
      cancelled: ["cancelled", false],
      fenced: ["unavailable", true],
      shutdown: ["unavailable", true],
      timeout: ["timeout", true],
    };
    for (const [reason, expected] of Object.entries(reasons) as [StopReason, unknown][]) {
      const { held, running } = hold();
      running.get("job_1")?.(reason);
      expect(reasonOf(held), reason).to.deep.equal(expected);
      running.get("job_1")?.(reason === "shutdown" ? "timeout" : "shutdown");
      expect([held.stopReason(), reasonOf(held)]).to.deep.equal([reason, expected]);
      held.release();
    }
  });

  it("ends the work when it runs too long, is cancelled, or is another's", async () => {
    const [slow, cancelled, taken, before] = [
      hold(),
      hold(),
      hold(),
      hold({ from: { cancelRequestedAt: new Date() } }),
    ];
    expect(before.held.stopReason(), "cancelled before this worker had it").to.equal("cancelled");
    cancelled.store.answer = async () => ({ ...cancelled.record, cancelRequestedAt: new Date() });
    taken.store.answer = async () => null;
    await pass(1_000);
    expect([cancelled, taken].map(({ held }) => held.stopReason())).to.deep.equal(["cancelled", "fenced"]);
    await pass(timeoutMs - 1_100);
    expect(slow.held.stopReason()).to.equal(undefined);
    await pass(100);
    expect(slow.held.stopReason()).to.equal("timeout");
    for (const { held } of [slow, cancelled, taken, before]) held.release();
  });

  it("is given up once no heartbeat has been answered for longer than it lasts", async () => {
    const { held, store } = hold();
    const { answer } = store;
    await pass(leaseMs + 1_000);
    store.answer = gone;
    await pass(leaseMs);
    store.answer = answer;
    await pass(1_000);
    expect(held.stopReason(), "it was renewed in time").to.equal(undefined);
    store.answer = gone;
    await pass(leaseMs + 1_000);
    expect(held.stopReason()).to.equal("fenced");
    held.release();
  });

  it("counts the lease from when a heartbeat was sent, however late it is answered", async () => {
    const { held, record, store } = hold();
    const late = Promise.withResolvers<JobRecord>();
    await pass(900);
    store.answer = () => late.promise;
    await pass(100);
    store.answer = gone;
    await pass(1_900);
    late.resolve(record); // sent at 1,000, answered at 2,900: it ends at 4,000
    await pass(1_100);
    expect(held.stopReason(), "at its end").to.equal(undefined);
    await pass(1_000);
    expect(held.stopReason(), "after it").to.equal("fenced");
    held.release();
  });

  it("lets progress be written at the edges of a stage, and a few times a second between them", async () => {
    const { held, written } = hold();
    const report = (stage: string, done: number): JobProgress => ({ stage, done, total: 9 });
    expect(held.lastProgress().stage).to.equal("queued");
    for (const [stage, done] of [
      ["a", 0],
      ["a", 1],
      ["b", 2],
      ["b", 9],
      ["b", 3],
    ] as const)
      await held.progress(report(stage, done));
    expect(written).to.deep.equal([report("a", 0), report("b", 2), report("b", 9)]);
    expect(held.lastProgress(), "written or not").to.deep.equal(report("b", 3));
    now += 249;
    await held.progress(report("b", 4));
    now += 1;
    await held.progress(report("b", 5));
    await held.progress(report("b", 6));
    expect(written.slice(3)).to.deep.equal([report("b", 5)]);
    held.release();
  });

  it("numbers steps from the last event that was seen, and refuses reports of a job that is not ours", async () => {
    const { held, record, store, written } = hold();
    await held.step({ n: 1 });
    store.answer = async () => ({ ...record, lastEventId: 9 });
    await held.step({ n: 2 });
    await held.step({ n: 3 });
    expect(written).to.deep.equal([
      [{ n: 1 }, { lastEventId: 4, progress: undefined }],
      [{ n: 2 }, { lastEventId: 4, progress: undefined }],
      [{ n: 3 }, { lastEventId: 9, progress: undefined }],
    ]);
    store.answer = async () => null;
    expect(await codeOf(held.step({ n: 4 }))).to.equal("unavailable");
    expect(written.pop()).to.deep.equal([{ n: 4 }, { lastEventId: 9, progress: undefined }]);
    expect(await codeOf(held.step({ n: 5 }))).to.equal("unavailable");
    expect(await codeOf(held.progress({ stage: "late", done: 1, total: 1 }))).to.equal("unavailable");
    expect(written, "nothing more").to.have.lengthOf(3);
    held.release();
    const lost = hold();
    lost.store.answer = async () => null;
    expect(await codeOf(lost.held.progress({ stage: "late", done: 1, total: 1 }))).to.equal("unavailable");
    lost.held.release();
  });
});
