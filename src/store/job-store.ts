import type { Collection, Db, Filter, UpdateFilter } from "mongodb";
import { defined } from "../lib/defined.ts";
import { unavailable } from "../lib/errors.ts";
import { defineCollection, ofTenant } from "./collection.ts";
import { gatherInserts } from "./gather-writes.ts";
import type { JobKind, JobProgress, JobRecord } from "./job-record.ts";
import { finalStates, type JobState, openStates } from "./job-state.ts";
import { makeKinStore } from "./kin-store.ts";
import {
  findFirst,
  findPage,
  holdsText,
  inTime,
  type Page,
  type PageQuery,
  projectionOf,
  type Shown,
  type Times,
} from "./page.ts";
import { makeRecords } from "./records.ts";
import { makeRefusals } from "./refused-jobs.ts";
import { changeOne } from "./writes.ts";

export const jobCollection = defineCollection<JobRecord>({
  name: "jobs",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { tenantId: 1, kind: 1, _id: -1 }, name: "kind_newest" },
    { key: { tenantId: 1, status: 1, _id: -1 }, name: "status_newest" },
    { key: { tenantId: 1, keyId: 1, _id: -1 }, name: "key_newest" },
    { key: { tenantId: 1, startedBy: 1, _id: -1 }, name: "starter_newest" },
    {
      key: { tenantId: 1, "subject.agentId": 1, _id: -1 },
      name: "agent_newest",
      partialFilterExpression: { "subject.agentId": { $exists: true } },
    },
    {
      key: { tenantId: 1, "subject.workflowId": 1, _id: -1 },
      name: "workflow_newest",
      partialFilterExpression: { "subject.workflowId": { $exists: true } },
    },
    {
      key: { tenantId: 1, "subject.collection": 1, _id: -1 },
      name: "collection_newest",
      partialFilterExpression: { "subject.collection": { $exists: true } },
    },
    {
      key: { tenantId: 1, "subject.documentId": 1, _id: -1 },
      name: "document_newest",
      partialFilterExpression: { "subject.documentId": { $exists: true } },
    },
    { key: { tenantId: 1, queue: 1 }, name: "tenant_queued", partialFilterExpression: { status: "queued" } },
    { key: { checkAt: 1 }, name: "check", sparse: true },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
    { key: { isAnnounced: 1, status: 1 }, name: "announced", partialFilterExpression: { isAnnounced: true } },
    { key: { queue: 1, _id: 1 }, name: "queued", partialFilterExpression: { status: "queued" } },
    {
      key: { tenantId: 1, parentJobId: 1, _id: -1 },
      name: "children",
      partialFilterExpression: { parentJobId: { $exists: true } },
    },
    {
      key: { status: 1, unsettledSince: 1 },
      name: "unsettled",
      partialFilterExpression: { unsettledSince: { $exists: true } },
    },
  ],
});

const shown = [
  "kind",
  "subject",
  "title",
  "input",
  "startedBy",
  "keyId",
  "requestId",
  "parentJobId",
  "parentStep",
  "status",
  "progress",
  "attempts",
  "createdAt",
  "startedAt",
  "finishedAt",
  "trace",
  "guard",
  "error",
] as const;

const projection = [...shown, "result.costUsd"];

/** What a list shows of a job: of its result only the cost, and no steps. */
export type JobSummaryRecord = Shown<JobRecord, typeof shown> & { result?: unknown };

/** Which jobs are listed; `keyId`: of this key alone; `q`: with this text in the title or the input; `isRepeated`: without such. */
type JobQuery = PageQuery &
  Times & {
    kind?: JobKind | undefined;
    status?: JobState | undefined;
    keyId?: string | undefined;
    parentJobId?: string | undefined;
    startedBy?: string | undefined;
    agentId?: string | undefined;
    workflowId?: string | undefined;
    collection?: string | undefined;
    documentId?: string | undefined;
    q?: string | undefined;
    isRepeated?: false | undefined;
  };

const held = ["tenantId", "lastEventId", "cancelRequestedAt", "unsettledSince"] as const;

/** What the holder of a job does not know of its record. */
export type HeldJob = Pick<JobRecord, "_id" | (typeof held)[number]>;

/** Steps of a job that are kept for those who follow it. */
const KEPT_STEPS = 200;
/** Attempts to number a step before other events; only the job's own worker makes events while it runs. */
const MAX_STEP_TURNS = 100;

/** Which record a compare-and-set is for, and what must be true of it; `unforgivenSince`: no lost attempts were taken back after that. */
export type JobGuard = { jobId: string; from: readonly JobState[]; leaseToken?: string; unforgivenSince?: Date };

/** Jobs that one write accepts at most. */
const INSERTED_AT_ONCE = 200;

/** Ids that one query asks for. */
const IDS_A_QUERY = 1_000;

export type JobStore = ReturnType<typeof makeJobStore>;

export function makeJobStore(db: Db) {
  const jobs = db.collection<JobRecord>(jobCollection.name);
  const { get } = makeRecords(jobs);
  return {
    /** @throws the driver's error 11000 when a job of its id is there. */
    insert: gatherInserts(db, jobs, INSERTED_AT_ONCE),
    find: get,
    kin: makeKinStore(jobs),
    /** The record of any tenant; for workers and reconcile, that were given the id by the queue. */
    findById: (jobId: string): Promise<JobRecord | null> => jobs.findOne({ _id: jobId }),
    list: (tenantId: string, query: JobQuery) => findJobs(jobs, tenantId, query),
    /** Jobs of all tenants that have ended, and whose webhooks were not told. */
    announced: (limit: number): Promise<JobRecord[]> =>
      jobs
        .find({ isAnnounced: true, status: { $in: [...finalStates] } })
        .limit(limit)
        .toArray(),
    /** Notes that the webhooks of a job were told of its end. */
    told: async (jobId: string): Promise<void> =>
      void (await jobs.updateOne({ _id: jobId }, { $unset: { isAnnounced: "" } })),
    /** Changes a record only if it is in one of the expected states (and under the expected lease); null when it is not. */
    change: (guard: JobGuard, update: UpdateFilter<JobRecord>) => changeOne(jobs, guarded(guard), update),
    /** As `change`, for the holder of a job, who has the rest of the record: a result or 200 steps are not sent back. */
    changeHeld: (guard: JobGuard, update: UpdateFilter<JobRecord>): Promise<HeldJob | null> =>
      jobs.findOneAndUpdate(guarded(guard), update, { returnDocument: "after", projection: projectionOf(held) }),
    ...makeStepWrites(jobs),
    ...makeRefusals(jobs),
    /** Takes a job whose time has come: one that waits, or one whose lease has ended. */
    take(jobId: string, now: Date, update: UpdateFilter<JobRecord>) {
      const waiting = { status: { $in: ["queued" as const, "awaiting" as const] }, notBefore: { $not: { $gt: now } } };
      const silent = { "lease.expiresAt": { $lte: now } }; // only a job that runs has one
      return changeOne(jobs, { _id: jobId, $or: [waiting, silent] }, update);
    },
    /** These jobs of a tenant, as a list shows them; those that are not there are left out. */
    summaries: (tenantId: string, jobIds: readonly string[]): Promise<JobSummaryRecord[]> =>
      jobs
        .find(ofTenant(tenantId, { _id: { $in: [...jobIds] } }))
        .project<JobSummaryRecord>(projectionOf(projection))
        .batchSize(jobIds.length + 1)
        .toArray(),
    /** In which state each of these jobs of a tenant is; those that are not there are left out. */
    async statesOf(tenantId: string, jobIds: readonly string[]): Promise<Map<string, JobState>> {
      const states = new Map<string, JobState>();
      for (let at = 0; at < jobIds.length; at += IDS_A_QUERY) {
        const ids = jobIds.slice(at, at + IDS_A_QUERY);
        const found = jobs.find(ofTenant(tenantId, { _id: { $in: ids } }), { projection: { status: 1 } });
        for await (const { _id, status } of found) states.set(_id, status);
      }
      return states;
    },
    /** Forgets those of these jobs of a tenant that have ended. */
    async removeEnded(tenantId: string, jobIds: readonly string[]): Promise<void> {
      await jobs.deleteMany(ofTenant(tenantId, { _id: { $in: [...jobIds] }, status: { $in: [...finalStates] } }));
    },
    /** Which of these jobs await something. */
    async findAwaiting(jobIds: readonly string[]): Promise<Set<string>> {
      const awaiting = { _id: { $in: [...jobIds] }, status: "awaiting" as const };
      const found = await jobs.find(awaiting, { projection: { _id: 1 } }).toArray();
      return new Set(found.map(({ _id }) => _id));
    },
    /** Open records that reconcile must look at, the most overdue first. */
    findDue: (now: Date, limit: number) => findFirst(jobs, { checkAt: { $lte: now } }, { by: "checkAt", limit }),
    async rescheduleCheck(jobIds: readonly string[], checkAt: Date): Promise<void> {
      await jobs.updateMany({ _id: { $in: [...jobIds] }, checkAt: { $exists: true } }, { $set: { checkAt } });
    },
    /** Jobs of a tenant that wait on a queue; counts no further than `limit`. */
    countQueued: (tenantId: string, queue: string, limit: number) =>
      jobs.countDocuments(ofTenant(tenantId, { status: "queued" as const, queue }), { limit }),
    /** Since when the oldest job of a queue waits that could run now; null when none does. */
    async findOldestQueued(queue: string, now: Date): Promise<Date | null> {
      const oldest = await jobs.findOne(
        { queue, status: "queued", notBefore: { $not: { $gt: now } } },
        { sort: { _id: 1 }, projection: { createdAt: 1, notBefore: 1 } },
      );
      return oldest && (oldest.notBefore ?? oldest.createdAt);
    },
    /** Jobs of a tenant that have not ended; counts no further than `limit`. */
    countOpen: (tenantId: string, limit: number) =>
      // not `$nin`, which would look at all that ever ended
      jobs.countDocuments(ofTenant(tenantId, { status: { $in: [...openStates] } }), { limit }),
  };
}

async function findJobs(
  jobs: Collection<JobRecord>,
  tenantId: string,
  { q, from, to, ...query }: JobQuery,
): Promise<Page<JobSummaryRecord>> {
  const { kind, status, keyId, parentJobId, startedBy, isRepeated, ...others } = query;
  const { agentId, workflowId, collection, documentId, ...page } = others;
  const about = {
    "subject.agentId": agentId,
    "subject.workflowId": workflowId,
    "subject.collection": collection,
    "subject.documentId": documentId,
    ...(isRepeated === false ? { "repeat.isDone": { $ne: true } } : {}),
  };
  const filter = defined({ kind, status, keyId, parentJobId, startedBy, ...about });
  const wanted = { tenantId, ...inTime("job", { from, to }, page), filter };
  if (q === undefined) return findPage(jobs, { ...wanted, fields: projection });
  // Only the texts of the thousands that are looked at leave the store; whole records take three times as long.
  const matches = ({ title, input }: Pick<JobRecord, "title" | "input">) => holdsText(q, [title, input]);
  const { data, nextCursor } = await findPage(jobs, { ...wanted, fields: ["title", "input"], matches });
  const found = jobs
    .find(ofTenant(tenantId, { _id: { $in: data.map(({ _id }) => _id) } }))
    .project<JobSummaryRecord>(projectionOf(projection))
    .sort({ _id: -1 });
  return { data: await found.toArray(), nextCursor };
}

const guarded = ({ jobId, from, leaseToken, unforgivenSince: since }: JobGuard): Filter<JobRecord> => ({
  ...defined({ _id: jobId, status: { $in: [...from] }, "lease.token": leaseToken }),
  ...(since && { forgivenAt: { $not: { $gt: since } } }),
});

function makeStepWrites(jobs: Collection<JobRecord>) {
  return {
    /**
     * As `changeHeld` of a job: numbers a step as the next event and keeps it, with the ones before it up to a bound. `lastEventId`: the
     * last number that the caller has seen, which saves a read while no other event comes between.
     */
    async addStep(
      guard: JobGuard,
      data: Record<string, unknown>,
      { lastEventId, progress }: { lastEventId?: number | undefined; progress?: JobProgress | undefined } = {},
    ): Promise<HeldJob | null> {
      let last = lastEventId;
      for (let turn = 0; turn < MAX_STEP_TURNS; turn += 1) {
        last ??= (await jobs.findOne(guarded(guard), { projection: { lastEventId: 1 } }))?.lastEventId;
        if (last === undefined) return null;
        // The step is kept together with its number, and only while that is the next one: else another event came first.
        const id = last + 1;
        const changed = await jobs.findOneAndUpdate(
          { ...guarded(guard), lastEventId: last },
          {
            $set: { lastEventId: id, updatedAt: new Date(), ...(progress ? { progress } : {}) },
            $push: { steps: { $each: [{ id, data }], $slice: -KEPT_STEPS } },
          },
          { returnDocument: "after", projection: projectionOf(held) },
        );
        if (changed !== null) return changed;
        last = undefined;
      }
      throw unavailable("The job's record, which others change all the time,");
    },
  };
}
