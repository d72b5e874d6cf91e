import { mock } from "node:test";
import { propagation } from "@opentelemetry/api";
import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import type { Enqueued } from "../../src/jobs/queue-client.ts";
import { queues } from "../../src/jobs/queues.ts";
import { type Submission, type SubmitDeps, submitJob } from "../../src/jobs/submit.ts";
import { unavailable } from "../../src/lib/errors.ts";
import { newId } from "../../src/lib/ids.ts";
import { switchTracing } from "../../src/observe/tracing.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { type JobStore, makeJobStore } from "../../src/store/job-store.ts";
import { NO_TENANT } from "../../src/store/refused-jobs.ts";
import { useStore } from "../support/use-store.ts";

const now = Date.parse("2040-01-01T00:00:00Z");
const tenantId = newId("tenant");
const documentId = newId("document");
const submission: Submission = { tenantId, ids: { documentId }, subject: { documentId }, isInteractive: false };

describe("the submission of a job", () => {
  const open = useStore();
  let store: JobStore;
  before(() => {
    store = makeJobStore(open());
  });
  beforeEach(() => mock.timers.enable({ apis: ["Date"], now }));
  afterEach(() => mock.timers.reset());

  /** What a submission comes to, and what it has asked of Redis and of the rejections. */
  const submit = async (fields: Partial<Submission> = {}, deps: Partial<SubmitDeps> = {}) => {
    const enqueued: [queue: string, job: Enqueued][] = [];
    const refused: { record: JobRecord; error: unknown }[] = [];
    const rejections = {
      reject: async () => expect.fail("refused"),
      rejectLater: (record: JobRecord, error: unknown) => void refused.push({ record, error }),
    };
    const ended: { record?: JobRecord; error?: unknown } = await submitJob(
      {
        store,
        queues: { add: async (...call) => void enqueued.push(call) },
        rejections,
        countBefore: () => 4,
        isAnnounced: async () => false,
        ...deps,
      },
      queues.ingestion,
      { ...submission, ...fields },
    ).then(
      (record) => ({ record }),
      (error: unknown) => ({ error }),
    );
    return { ...ended, enqueued, refused };
  };
  const recordOf = ({ record }: { record?: JobRecord }) => record ?? expect.fail("it was not accepted");

  it("writes its record, and puts its ids on the queue", async () => {
    const submitted = await submit();
    const record = recordOf(submitted);
    const { _id: jobId } = record;
    expect(jobId).to.match(/^job_/);
    const payload = { v: 1, jobId, tenantId, documentId };
    expect(record).to.deep.equal({
      _id: jobId,
      tenantId,
      kind: "ingestion",
      queue: "ingestion",
      subject: { documentId },
      payload,
      status: "queued",
      progress: { stage: "queued", done: 0, total: 0 },
      isInteractive: false,
      priority: 100_005,
      attempts: 0,
      failures: 0,
      lastEventId: 0,
      createdAt: new Date(now),
      updatedAt: new Date(now),
      checkAt: new Date(now + 10_000),
    });
    expect(await store.find(tenantId, jobId)).to.deep.equal(record);
    expect(submitted.enqueued).to.deep.equal([["ingestion", { jobId, payload, priority: 100_005 }]]);
  });

  it("puts interactive jobs first, under the given id", async () => {
    const jobId = newId("job");
    const { _id, priority, isInteractive } = recordOf(await submit({ jobId, isInteractive: true }));
    expect([_id, priority, isInteractive]).to.deep.equal([jobId, 5, true]);
  });

  it("notes the trace that it is a part of", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    propagation.setGlobalPropagator({
      inject: (_context, carrier) => void Object.assign(carrier as object, { traceparent }),
      extract: (context) => context,
      fields: () => [],
    });
    switchTracing(await import("@opentelemetry/api"));
    try {
      expect(recordOf(await submit()).trace).to.equal(traceparent);
    } finally {
      switchTracing(undefined);
      propagation.disable();
    }
  });

  it("is refused later when the store did not answer, because it may have the record", async () => {
    const down = new MongoNetworkError("cut");
    const { error, refused, enqueued } = await submit({}, { store: { ...store, insert: () => Promise.reject(down) } });
    expect([error, enqueued]).to.deep.equal([down, []]);
    expect(refused).to.have.lengthOf(1);
    expect(refused[0]).to.have.nested.include({ "record.status": "queued", "error.code": "unavailable" });
  });

  it("leaves an existing job's record with the same id alone", async () => {
    const { _id: jobId } = recordOf(await submit());
    const { error, refused, enqueued } = await submit({ jobId });
    expect(error).to.include({ code: 11_000 });
    expect([refused, enqueued]).to.deep.equal([[], []]);
  });

  it("takes the place of a refused job with the same id: its call was tried again", async () => {
    const refused = recordOf(await submit());
    const { checkAt: _checkAt, ...record } = refused;
    expect(await store.reject({ ...record, status: "failed", tenantId: NO_TENANT }, "queued")).to.equal(true);
    const again = recordOf(await submit({ jobId: refused._id }));
    expect(await store.find(again.tenantId, again._id)).to.deep.equal(again);
  });

  it("fails when the queue did not accept it, unless a worker has it", async () => {
    const down = unavailable("The queue");
    const add = () => Promise.reject(down);
    const reject = (isRejected: boolean) => ({ reject: async () => isRejected, rejectLater: () => undefined });
    expect((await submit({}, { queues: { add }, rejections: reject(true) })).error).to.equal(down);
    expect(recordOf(await submit({}, { queues: { add }, rejections: reject(false) })).status).to.equal("queued");
  });
});
