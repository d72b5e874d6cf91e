import type { Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import type { RunCallback } from "./callback-store.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import type { StoredCaller } from "./key-store.ts";
import { findPage, ofKey, type Page, type PageQuery, type Shown } from "./page.ts";
import { makeWorkRecords } from "./records.ts";
import { type CountedRun, countRuns, type PartOfRun, withBytes } from "./run-use.ts";
import { makeUseStore } from "./use-store.ts";
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

/** The thing that a run waits for. */
export type Awaiting = {
  approvalId: string;
  stepId: string;
  path: string;
  assigneeRole: "owner" | "admin";
  since: Date;
  expiresAt: Date;
};

/** A run of a workflow, with the definition that it began with. Its steps' results are records of their own. */
export type WorkflowRunRecord = CountedRun & {
  workflowId: string;
  version: number;
  name: string;
  /** The definition as JSON. */
  definition: string;
  /** Who started the run. Its model calls are billed to them. */
  caller: StoredCaller;
  /** JSON; absent when none was given. */
  input?: string;
  /** Where its approvals are reported. */
  callback?: RunCallback;
  /** True while the run is open and awaits no decision: sweeps look after those alone, however many wait. */
  isWatched?: true;
  /** The decision that the run awaits, or awaited when it ended. */
  awaiting?: Awaiting;
  /** The step that is attempted again, or was when the run ended. */
  trying?: Trying;
  end?: WorkflowRunEnd;
};

const shown = ["workflowId", "name", "version", "jobId", "awaiting", "createdAt", "startedAt"] as const;

/** What a list shows of a run. */
export type WorkflowRunSummaryRecord = Shown<WorkflowRunRecord, typeof shown> & {
  end?: Pick<WorkflowRunEnd, "status" | "finishedAt">;
};

/** What a sweep needs of a run, to close it. */
export type OpenWorkflowRun = Pick<WorkflowRunRecord, "_id" | "tenantId" | "jobId" | "awaiting">;

export const workflowRunCollection = defineCollection<WorkflowRunRecord>({
  name: "workflowRuns",
  indexes: [
    { key: { tenantId: 1, workflowId: 1, _id: -1 }, name: "workflow_newest" },
    { key: { updatedAt: 1 }, name: "watched", partialFilterExpression: { isWatched: true } },
  ],
});

/** The result of a step, recorded once. Values are JSON texts, so that an output may have any keys. */
export type WorkflowStepRecord = TenantOwned & {
  /** The run and the step's path: a step has one result in a run. */
  _id: string;
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
  /** How a model's answer ended. */
  finishReason?: string;
  spent?: { tokens: number; costUsd: number };
  /** How many the store keeps for it. */
  bytes?: number;
};

export const workflowStepCollection = defineCollection<WorkflowStepRecord>({
  name: "workflowSteps",
  indexes: [{ key: { tenantId: 1, runId: 1, seq: 1 }, name: "run_sequence", unique: true }],
});

export function makeWorkflowRunStore(db: Db) {
  const runs = db.collection<WorkflowRunRecord>(workflowRunCollection.name);
  const steps = db.collection<WorkflowStepRecord>(workflowStepCollection.name);
  const { update, begin, ...records } = makeWorkRecords(runs, {
    watched: { isWatched: true },
    fields: ["tenantId", "jobId", "awaiting"],
  });
  const parts = db.collection<PartOfRun>(workflowStepCollection.name);
  const { settle, ...counted } = countRuns(runs, { records, use: makeUseStore(db), parts });
  return {
    ...records,
    ...counted,
    list(
      tenantId: string,
      workflowId: string,
      { keyId, ...page }: PageQuery & { keyId?: string | undefined },
    ): Promise<Page<WorkflowRunSummaryRecord>> {
      const fields = [...shown, "end.status", "end.finishedAt", "caller.keyId"];
      const matches = ofKey(keyId, ({ caller }: WorkflowRunRecord) => caller.keyId);
      return findPage(runs, { tenantId, page, filter: { workflowId }, fields, matches });
    },
    /**
     * Records that an open run is running. What it awaits stays, since a worker that has lost the run may call this late.
     * Returns null if the run has ended.
     */
    begin: (tenantId: string, runId: string) => begin(tenantId, runId, { $set: { isWatched: true } }),
    /** Notes that a step will be tried again. */
    noteTry: (tenantId: string, runId: string, trying: Trying) => update(tenantId, runId, { $set: { trying } }),
    /** Notes what an open run awaits. */
    await: (tenantId: string, runId: string, awaiting: Awaiting) =>
      update(tenantId, runId, { $set: { awaiting }, $unset: { trying: "", isWatched: "" } }),
    /** Notes that an open run awaits nothing any more. */
    goOn: (tenantId: string, runId: string) => update(tenantId, runId, { $unset: { awaiting: "" } }),
    /** Ends an open run. Returns false if it has ended already. `stepBytes`: bytes of its results, if they are known. */
    async finish(tenantId: string, runId: string, end: WorkflowRunEnd, stepBytes?: number): Promise<boolean> {
      const $set = { end, updatedAt: end.finishedAt };
      const isEnded = await update(tenantId, runId, { $set, $unset: { isOpen: "", isWatched: "" } });
      if (isEnded) await settle(tenantId, runId, end, stepBytes);
      return isEnded;
    },
    /** Stores a step's result and returns it. Returns null if this step, or this place, has a result already. */
    async addStep(step: WorkflowStepRecord): Promise<WorkflowStepRecord | null> {
      const kept = withBytes(step);
      return (await insertIfAbsent(steps, kept)) ? kept : null;
    },
    /** The results of a run, in the order in which they came. */
    steps: (tenantId: string, runId: string): Promise<WorkflowStepRecord[]> =>
      steps.find(ofTenant(tenantId, { runId })).sort({ seq: 1 }).toArray(),
  };
}
