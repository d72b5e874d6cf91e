import type { Db, Filter } from "mongodb";
import type { ErrorView } from "../errors.ts";
import { defineCollection, ofTenant } from "./collection.ts";
import type { Role } from "./key-store.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { insertIfAbsent } from "./writes.ts";

/** How a run can have ended. */
export const workflowRunEnds = ["completed", "failed", "rejected", "expired", "cancelled"] as const;

/** How a run ended. `output` is JSON. */
export type WorkflowRunEnd = {
  status: (typeof workflowRunEnds)[number];
  output?: string;
  error?: ErrorView;
  finishedAt: Date;
};

/** A step that has failed and will be tried again. */
export type Trying = { path: string; id: string; type: string; attempts: number; startedAt: Date };

/** What a run waits for. */
export type Awaiting = {
  approvalId: string;
  stepId: string;
  path: string;
  assigneeRole: "owner" | "admin";
  since: Date;
  expiresAt: Date;
};

/** A run of a workflow, with the definition that it began with. Its steps' results are records of their own. */
export type WorkflowRunRecord = {
  _id: string;
  tenantId: string;
  workflowId: string;
  version: number;
  name: string;
  /** The definition as JSON. */
  definition: string;
  jobId: string;
  /** Who started it: its model calls are theirs. */
  caller: { keyId: string; subject: string; role: Role };
  /** JSON; absent when none was given. */
  input?: string;
  /** True until the run has ended, and then absent. */
  isOpen?: true;
  /** True while the run is open and waits for nobody: sweeps look after those alone, however many wait. */
  isWatched?: true;
  /** The decision that the run awaits, or awaited when it ended. */
  awaiting?: Awaiting;
  /** The step that is attempted again, or was when the run ended. */
  trying?: Trying;
  end?: WorkflowRunEnd;
  createdAt: Date;
  startedAt?: Date;
  updatedAt: Date;
};

/** What a list shows of a run. */
export type WorkflowRunSummaryRecord = Pick<
  WorkflowRunRecord,
  "_id" | "workflowId" | "name" | "version" | "jobId" | "awaiting" | "createdAt" | "startedAt"
> & { end?: Pick<WorkflowRunEnd, "status" | "finishedAt"> };

const summaryFields = {
  workflowId: 1,
  name: 1,
  version: 1,
  jobId: 1,
  awaiting: 1,
  createdAt: 1,
  startedAt: 1,
  "end.status": 1,
  "end.finishedAt": 1,
} as const;

/** What a sweep needs of a run, to close it. */
export type OpenWorkflowRun = Pick<WorkflowRunRecord, "_id" | "tenantId" | "jobId" | "awaiting">;

export const workflowRunCollection = defineCollection<WorkflowRunRecord>({
  name: "workflowRuns",
  indexes: [
    { key: { tenantId: 1, workflowId: 1, _id: -1 }, name: "workflow_newest" },
    { key: { updatedAt: 1 }, name: "watched", partialFilterExpression: { isWatched: true } },
  ],
});

/** The result of one step, recorded once. Texts, so that keys of any kind can be in an output. */
export type WorkflowStepRecord = {
  /** The run and the step's path: a step has one result in a run. */
  _id: string;
  tenantId: string;
  runId: string;
  /** Place among the run's results, from 0. */
  seq: number;
  path: string;
  id: string;
  type: string;
  status: "completed" | "failed";
  startedAt: Date;
  finishedAt: Date;
  attempts: number;
  /** JSON. */
  output?: string;
  error?: ErrorView;
  spent?: { tokens: number; costUsd: number };
};

export const workflowStepCollection = defineCollection<WorkflowStepRecord>({
  name: "workflowSteps",
  indexes: [{ key: { tenantId: 1, runId: 1, seq: 1 }, name: "run_sequence", unique: true }],
});

export type WorkflowRunStore = {
  insert(run: WorkflowRunRecord): Promise<void>;
  get(tenantId: string, runId: string): Promise<WorkflowRunRecord | null>;
  list(tenantId: string, workflowId: string, page: PageQuery): Promise<Page<WorkflowRunSummaryRecord>>;
  /** Notes that an open run is run now, and waits no more. Null when it has ended. */
  begin(tenantId: string, runId: string): Promise<WorkflowRunRecord | null>;
  /** Notes that a step will be tried again. */
  noteTry(tenantId: string, runId: string, trying: Trying): Promise<void>;
  /** Notes what an open run waits for. */
  await(tenantId: string, runId: string, awaiting: Awaiting): Promise<void>;
  /** Ends a run that is open; false when it has ended before. */
  finish(tenantId: string, runId: string, end: WorkflowRunEnd): Promise<boolean>;
  remove(tenantId: string, runId: string): Promise<void>;
  /** Open runs that wait for nobody, whosever, untouched since `before`; the longest untouched first. */
  unfinished(query: { before: Date; limit: number }): Promise<OpenWorkflowRun[]>;
  /** Puts an open run at the end of `unfinished`. */
  touch(tenantId: string, runId: string): Promise<void>;
  /** Keeps a step's result; false when there is one already, of this step or at this place. */
  addStep(step: WorkflowStepRecord): Promise<boolean>;
  /** The results of a run, in the order in which they came. */
  steps(tenantId: string, runId: string): Promise<WorkflowStepRecord[]>;
};

export function makeWorkflowRunStore(db: Db): WorkflowRunStore {
  const runs = db.collection<WorkflowRunRecord>(workflowRunCollection.name);
  const steps = db.collection<WorkflowStepRecord>(workflowStepCollection.name);
  const open = (tenantId: string, runId: string): Filter<WorkflowRunRecord> =>
    ofTenant(tenantId, { _id: runId, isOpen: true as const });
  return {
    insert: async (run) => void (await runs.insertOne(run)),
    get: (tenantId, runId) => runs.findOne(ofTenant(tenantId, { _id: runId })),
    list: (tenantId, workflowId, page) =>
      findPage(runs, { tenantId, page, filter: { workflowId }, fields: summaryFields }),
    begin(tenantId, runId) {
      const now = new Date();
      const update = {
        $min: { startedAt: now },
        $set: { updatedAt: now, isWatched: true as const },
        $unset: { awaiting: "" as const },
      };
      return runs.findOneAndUpdate(open(tenantId, runId), update, { returnDocument: "after" });
    },
    noteTry: async (tenantId, runId, trying) =>
      void (await runs.updateOne(open(tenantId, runId), { $set: { trying, updatedAt: new Date() } })),
    await: async (tenantId, runId, awaiting) =>
      void (await runs.updateOne(open(tenantId, runId), {
        $set: { awaiting, updatedAt: new Date() },
        $unset: { trying: "" as const, isWatched: "" as const },
      })),
    async finish(tenantId, runId, end) {
      const { modifiedCount } = await runs.updateOne(open(tenantId, runId), {
        $set: { end, updatedAt: end.finishedAt },
        $unset: { isOpen: "", isWatched: "" },
      });
      return modifiedCount > 0;
    },
    remove: async (tenantId, runId) => void (await runs.deleteOne(ofTenant(tenantId, { _id: runId }))),
    unfinished: ({ before, limit }) =>
      runs
        .find({ isWatched: true, updatedAt: { $lt: before } })
        .project<OpenWorkflowRun>({ tenantId: 1, jobId: 1, awaiting: 1 })
        .sort({ updatedAt: 1 })
        .limit(limit)
        .toArray(),
    touch: async (tenantId, runId) =>
      void (await runs.updateOne(open(tenantId, runId), { $set: { updatedAt: new Date() } })),
    addStep: (step) => insertIfAbsent(steps, step),
    steps: (tenantId, runId) => steps.find(ofTenant(tenantId, { runId })).sort({ seq: 1 }).toArray(),
  };
}
