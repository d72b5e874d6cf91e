import { mock } from "node:test";
import { expect } from "chai";
import { type Claims, type Lease, makeClaims } from "../../src/jobs/claim.ts";
import { defined } from "../../src/lib/defined.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { type JobStore, makeJobStore } from "../../src/store/job-store.ts";
import { makeJob } from "../support/make-job.ts";
import { useStore } from "../support/use-store.ts";

type Change = {
  change(claims: Claims, lease: Lease): Promise<unknown>;
  /** What is different on the record then; what is undefined is gone. */
  becomes: { [K in keyof JobRecord]?: JobRecord[K] | undefined };
  isAnnounced: boolean;
};

const LEASE_MS = 60_000;
const begin = Date.parse("2040-01-01T00:00:00Z");
const at = (ms: number) => new Date(begin + ms);
const error = { type: "server_error", code: "internal", message: "It is over." } as const;
const earlier = { ...error, message: "Not yet." };

/** All ends are at the second 1. */
const ended = {
  lease: undefined,
  checkAt: undefined,
  finishedAt: at(1_000),
  updatedAt: at(1_000),
  expireAt: at(1_000 + 30 * 86_400_000),
  lastEventId: 9,
};
const changes: Record<string, Change> = {
  "reports progress": {
    change: (claims, lease) => claims.progress(lease, { stage: "half", done: 1, total: 2 }),
    becomes: { progress: { stage: "half", done: 1, total: 2 }, updatedAt: at(1_000), lastEventId: 9 },
    isAnnounced: true,
  },
  "adds a step": {
    change: (claims, lease) => claims.step(lease, { n: 1 }),
    becomes: { steps: [{ id: 9, data: { n: 1 } }], updatedAt: at(1_000), lastEventId: 9 },
    isAnnounced: true,
  },
  "completes it": {
    change: (claims, lease) => claims.complete(lease, { answer: 42 }, { stage: "half", done: 1, total: 2 }),
    becomes: {
      ...ended,
      status: "completed",
      result: { answer: 42 },
      progress: { stage: "completed", done: 2, total: 2 },
      error: undefined,
    },
    isAnnounced: true,
  },
  "fails it": {
    change: (claims, lease) => claims.fail(lease, error),
    becomes: { ...ended, status: "failed", error },
    isAnnounced: true,
  },
  "cancels it": {
    change: (claims, lease) => claims.cancelled(lease),
    becomes: { ...ended, status: "cancelled", error: undefined },
    isAnnounced: true,
  },
  "gives it back after an error": {
    change: (claims, lease) => claims.retry(lease, at(5_000), error),
    becomes: {
      status: "queued",
      lease: undefined,
      notBefore: at(5_000),
      checkAt: at(15_000),
      error,
      failures: 2,
      updatedAt: at(1_000),
      lastEventId: 9,
    },
    isAnnounced: true,
  },
  "reschedules it": {
    change: (claims, lease) => claims.reschedule(lease, at(5_000), "awaiting"),
    becomes: {
      status: "awaiting",
      lease: undefined,
      notBefore: at(5_000),
      checkAt: at(15_000),
      attempts: 1,
      updatedAt: at(1_000),
      lastEventId: 9,
    },
    isAnnounced: false,
  },
  "suspends it": {
    change: (claims, lease) => claims.suspend(lease),
    becomes: {
      status: "awaiting",
      lease: undefined,
      checkAt: undefined,
      attempts: 1,
      updatedAt: at(1_000),
      lastEventId: 9,
    },
    isAnnounced: true,
  },
  "releases it": {
    change: (claims, lease) => claims.release(lease),
    becomes: {
      status: "queued",
      lease: undefined,
      checkAt: at(1_000),
      attempts: 1,
      updatedAt: at(1_000),
      lastEventId: 9,
    },
    isAnnounced: false,
  },
};

/** The clock stands still: what a change writes is compared as a whole. */
/** What the holder of a job gets of its record. */
const heldOf = ({ _id, tenantId, lastEventId, cancelRequestedAt }: JobRecord) =>
  defined({ _id, tenantId, lastEventId, cancelRequestedAt });

describe("the claims of jobs", () => {
  const open = useStore();
  let store: JobStore;
  let claims: Claims;
  const announced: string[] = [];
  before(() => {
    store = makeJobStore(open());
    claims = makeClaims(store, LEASE_MS, ({ _id }) => announced.push(_id));
  });
  beforeEach(() => mock.timers.enable({ apis: ["Date"], now: begin }));
  afterEach(() => mock.timers.reset());

  const insert = async (fields: Partial<JobRecord> = {}) => {
    const record = makeJob({ attempts: 1, failures: 1, lastEventId: 7, error: earlier, checkAt: at(0), ...fields });
    await store.insert(record);
    return record;
  };
  const claim = async ({ _id }: JobRecord) => {
    announced.length = 0;
    return (await claims.claim(_id, "a worker")) ?? expect.fail(`${_id} was not to be had`);
  };
  const stored = (jobId: string) => store.findById(jobId);

  it("begin when the job is due, and expire without a heartbeat", async () => {
    const job = await insert({ notBefore: at(1) });
    await insert(); // another one
    expect(await claims.claim(job._id, "early"), "too early").to.equal(null);
    mock.timers.setTime(begin + 1);
    const { record, lease } = await claim(job);
    expect(lease.jobId).to.equal(job._id);
    const running = {
      ...job,
      status: "running",
      lease: { workerId: "a worker", token: lease.token, expiresAt: at(1 + LEASE_MS) },
      attempts: 2,
      startedAt: at(1),
      updatedAt: at(1),
      checkAt: at(1 + LEASE_MS),
      notBefore: undefined,
      lastEventId: 8,
    };
    expect(record).to.deep.equal(defined(running));
    expect(await stored(job._id)).to.deep.equal(record);
    mock.timers.setTime(begin + LEASE_MS);
    expect(await claims.claim(job._id, "another"), "while the lease lasts").to.equal(null);
    mock.timers.setTime(begin + LEASE_MS + 1);
    const next = await claim(job);
    expect(next.lease.token).to.not.equal(lease.token);
    expect(next.record).to.deep.include({ attempts: 3, startedAt: at(1) });
    expect(await claims.heartbeat(lease), "the first holder's").to.equal(null);
  });

  it("are given for an awaiting job too, and not for one that has ended", async () => {
    expect((await claim(await insert({ status: "awaiting" }))).record.status).to.equal("running");
    for (const status of ["completed", "failed", "cancelled"] as const)
      expect(await claims.claim((await insert({ status }))._id, "late"), status).to.equal(null);
  });

  it("are extended by a heartbeat, which is not announced", async () => {
    const { record, lease } = await claim(await insert());
    mock.timers.setTime(begin + 1_000);
    const expiresAt = at(1_000 + LEASE_MS);
    const held = { ...record, lease: { ...record.lease, expiresAt }, checkAt: expiresAt };
    expect(await claims.heartbeat(lease)).to.deep.equal(heldOf(record));
    expect(await stored(record._id)).to.deep.equal(held);
    expect(announced).to.deep.equal([]);
  });

  for (const [name, { change, becomes, isAnnounced }] of Object.entries(changes)) {
    it(`${name}: its holder, and no other worker`, async () => {
      const { record, lease } = await claim(await insert());
      mock.timers.setTime(begin + 1_000);
      for (const another of [{ token: "another" }, { jobId: "job_another" }])
        expect(await change(claims, { ...lease, ...another })).to.equal(null);
      expect([await stored(record._id), announced]).to.deep.equal([record, []]);
      const after = defined({ ...record, ...becomes }) as JobRecord;
      expect(await change(claims, lease)).to.deep.equal(heldOf(after));
      expect(await stored(record._id)).to.deep.equal(after);
      expect(announced).to.deep.equal(isAnnounced ? [record._id] : []);
    });
  }

  it("are released for good by the end of the job", async () => {
    const { lease } = await claim(await insert());
    await claims.cancelled(lease);
    for (const { change } of Object.values(changes)) expect(await change(claims, lease)).to.equal(null);
  });

  it("are not needed to resume a job that awaits something, at once and once", async () => {
    const [job, other] = [await insert(), await insert({ status: "awaiting" })];
    await claims.reschedule((await claim(job)).lease, at(5_000), "awaiting");
    const rescheduled = await stored(job._id);
    mock.timers.setTime(begin + 1_000);
    const resumed = {
      ...rescheduled,
      status: "queued",
      notBefore: undefined,
      updatedAt: at(1_000),
      checkAt: at(3_000),
      lastEventId: 10,
    };
    expect(await claims.resume(job._id)).to.deep.equal(defined(resumed));
    expect(announced).to.deep.equal([job._id]);
    expect(await claims.resume(job._id), "again").to.equal(null);
    expect(await stored(other._id)).to.deep.equal(other);
  });

  it("count their takeovers while the job is open", async () => {
    for (const status of ["queued", "running", "awaiting"] as const) {
      const [job, other] = [await insert({ status }), await insert({ status })];
      expect(await claims.overtaken(job), status).to.deep.equal({ ...job, overtaken: 1 });
      expect(await stored(other._id)).to.deep.equal(other);
    }
    expect(await claims.overtaken(await insert({ status: "completed" }))).to.equal(null);
    const forgiven = await insert({ status: "running", forgivenAt: new Date(Date.now() + 60_000) });
    expect(await claims.overtaken(forgiven), "its attempt was taken back already").to.equal(null);
  });
});
