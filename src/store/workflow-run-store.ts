import type { Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import type { RunCallback } from "./callback-store.ts";
import { defineCollection } from "./collection.ts";
import type { StoredCaller } from "./key-store.ts";
import { findPage, ofKey, type Page, type PageQuery, type Shown } from "./page.ts";
import { makeWorkRecords } from "./records.ts";
import { type CountedRun, countRuns, type PartOfRun } from "./run-use.ts";
import { makeUseStore } from "./use-store.ts";
import { makeWorkflowStepStore, workflowStepCollection } from "./workflow-step-store.ts";

/** How a run can have ended. */
export const workflowRunEnds = ["completed", "failed", "rejected", "expired", "cancelled"] as const;

/** How a run ended. `output` is JSON. */
export type WorkflowRunEnd = {
  status: (typeof workflowRunEnds)[number];
  output?: string;
  error?: ErrorView;
  /** Of the models of its steps. */
  costUsd?: number;
  finishedAt: Date;
};

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
  /** The run that it goes on from. */
  retryOf?: string;
  /** Where its approvals are reported. */
  callback?: RunCallback;
  /** True while the run is open and awaits no decision: sweeps look after those alone, however many wait. */
  isWatched?: true;
  /** The decision that the run awaits, or awaited when it ended. */
  awaiting?: Awaiting;
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

export function makeWorkflowRunStore(db: Db) {
  const runs = db.collection<WorkflowRunRecord>(workflowRunCollection.name);
  const steps = makeWorkflowStepStore(db);
  const { update, begin, ...records } = makeWorkRecords(runs, {
    watched: { isWatched: true },
    fields: ["tenantId", "jobId", "awaiting"],
  });
  const parts = db.collection<PartOfRun>(workflowStepCollection.name);
  const { settle, ...counted } = countRuns(runs, { records, use: makeUseStore(db), parts });
  return {
    ...records,
    ...counted,
    ...steps,
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
    /** Notes what an open run awaits. */
    await: (tenantId: string, runId: string, awaiting: Awaiting) =>
      update(tenantId, runId, { $set: { awaiting }, $unset: { isWatched: "" } }),
    /** Notes that an open run awaits the decision at this step no more. */
    goOn: (tenantId: string, runId: string, path: string) =>
      update(tenantId, runId, { $unset: { awaiting: "" } }, { "awaiting.path": path }),
    /** Notes that an open run waits for something: no sweep need look after it. */
    rest: (tenantId: string, runId: string) => update(tenantId, runId, { $unset: { isWatched: "" } }),
    /** Ends an open run. Returns false if it has ended already. `stepBytes`: bytes of its results, if they are known. */
    async finish(tenantId: string, runId: string, end: WorkflowRunEnd, stepBytes?: number): Promise<boolean> {
      const $set = { end, updatedAt: end.finishedAt };
      const isEnded = await update(tenantId, runId, { $set, $unset: { isOpen: "", isWatched: "" } });
      if (isEnded) await settle(tenantId, runId, end, stepBytes);
      return isEnded;
    },
  };
}
