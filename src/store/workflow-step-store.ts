import type { Collection, Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { withBytes } from "./run-use.ts";
import { insertIfAbsent } from "./writes.ts";

/** A job that a step has started: its id, and those of what it runs, as `{ runId }`. */
export type StepChild = { kind: string; jobId: string; ids: Record<string, string> };

/** What every record of a step says of it. */
type AboutStep = TenantOwned & {
  runId: string;
  /** Where it stands in the definition, as `2/then/0`; within a list over items also at which, as `3/do[17]/0`. */
  path: string;
  id: string;
  type: string;
  attempts: number;
  startedAt: Date;
  child?: StepChild;
  /** How far a list over items has come. */
  items?: { done: number; total: number; failed: number };
};

/** The result of one step, recorded once. Texts, so that keys of any kind can be in an output. */
export type WorkflowStepRecord = AboutStep & {
  /** The run and the step's path: a step has one result in a run. */
  _id: string;
  /** Place among the results of the run, or of their scope, from 0. */
  seq: number;
  status: "completed" | "failed";
  finishedAt: Date;
  /** JSON. */
  output?: string;
  error?: ErrorView;
  /** How a model's answer ended. */
  finishReason?: string;
  /** How the run ends with this step: as the run that it had started. */
  ends?: "rejected" | "expired";
  spent?: { tokens: number; costUsd: number };
  /** How many the store keeps for it. */
  bytes?: number;
};

/**
 * A result within a list over items. `scope`: of an item, the list, as `3/do`; of a step of an item, the item, as `3/do[17]`. The
 * `seq` of an item is its index.
 */
export type WorkflowItemRecord = WorkflowStepRecord & { scope: string };

/** The end of an item without its output. */
export type EndedItem = Pick<WorkflowItemRecord, "seq" | "status" | "bytes" | "spent">;

/** A step that has begun and is to go on later. It stays after its result is recorded, and counts no more then. */
export type OpenStepRecord = AboutStep & {
  _id: string;
  /** As of an item's results; empty outside of lists over items. */
  scope: string;
  status: "retrying" | "waiting" | "running";
  /** When the next attempt may begin. */
  retryAt?: Date;
  /** How often in a row it has waited for a part of the platform that was away. */
  waitsForPart?: number;
  /** What its earlier attempts have used. */
  spent?: WorkflowStepRecord["spent"];
  /** Of a list over items: what it goes over, as JSON, and the index below which all items have a result. */
  list?: string;
  floor?: number;
};

export const workflowStepCollection = defineCollection<WorkflowStepRecord>({
  name: "workflowSteps",
  indexes: [{ key: { tenantId: 1, runId: 1, seq: 1 }, name: "run_sequence", unique: true }],
});

export const workflowItemCollection = defineCollection<WorkflowItemRecord>({
  name: "workflowItems",
  indexes: [{ key: { tenantId: 1, runId: 1, scope: 1, seq: 1 }, name: "scope_sequence", unique: true }],
});

export const openStepCollection = defineCollection<OpenStepRecord>({
  name: "workflowOpenSteps",
  indexes: [{ key: { tenantId: 1, runId: 1, scope: 1 }, name: "run_scope" }],
});

/** Open steps that a view shows at most. */
const SHOWN_OPEN = 200;

/** The results of the steps of runs, and what is known of steps that have begun. */
export function makeWorkflowStepStore(db: Db) {
  const steps = db.collection<WorkflowStepRecord>(workflowStepCollection.name);
  const items = db.collection<WorkflowItemRecord>(workflowItemCollection.name);
  const keepIn =
    <T extends WorkflowStepRecord>(results: Collection<T>) =>
    async (step: T): Promise<T | null> => {
      const kept = withBytes(step);
      return (await insertIfAbsent(results, kept as never)) ? kept : null; // the driver cannot follow a generic record
    };
  return {
    /** Keeps a step's result, and returns it as it is kept; null when there is one already, of this step or at this place. */
    addStep: keepIn(steps),
    /** The same of a result within a list over items. */
    addItem: keepIn(items),
    /** The results of a run outside of lists over items, in the order in which they came. */
    steps: (tenantId: string, runId: string): Promise<WorkflowStepRecord[]> =>
      steps.find(ofTenant(tenantId, { runId })).sort({ seq: 1 }).toArray(),
    /** The results of the steps of these items, in order. */
    stepsOfItems: (tenantId: string, runId: string, scopes: readonly string[]): Promise<WorkflowItemRecord[]> =>
      items
        .find(ofTenant(tenantId, { runId, scope: { $in: [...scopes] } }))
        .sort({ scope: 1, seq: 1 })
        .toArray(),
    /** The items of a list that have ended, from the index `from` on, in order; without their outputs. */
    endedItems: (tenantId: string, runId: string, { scope, from }: { scope: string; from: number }) =>
      items
        .find(ofTenant(tenantId, { runId, scope, seq: { $gte: from } }))
        .project<EndedItem>({ seq: 1, status: 1, bytes: 1, spent: 1 })
        .sort({ seq: 1 })
        .toArray(),
    /** Items of a list that have ended, with their outputs, from the index `from` on, in order; all unless there is a `limit`. */
    items(
      tenantId: string,
      runId: string,
      { scope, from, limit = 0 }: { scope: string; from: number; limit?: number },
    ): AsyncIterable<WorkflowItemRecord> {
      const found = items.find(ofTenant(tenantId, { runId, scope, seq: { $gte: from } }));
      return found.sort({ seq: 1 }).limit(limit);
    },
    /** What was used by each result within lists over items. */
    spentOnItems: (tenantId: string, runId: string): Promise<Pick<WorkflowItemRecord, "path" | "spent">[]> =>
      items
        .find(ofTenant(tenantId, { runId, spent: { $exists: true } }))
        .project<Pick<WorkflowItemRecord, "path" | "spent">>({ path: 1, spent: 1 })
        .toArray(),
    ...makeOpenSteps(db),
    /** Copies results of a run to another one. Safe to repeat. */
    async copyResults(
      { tenantId, _id: runId }: TenantOwned,
      to: string,
      isWanted: (step: WorkflowStepRecord) => boolean,
    ): Promise<void> {
      const copyOf = <T extends WorkflowStepRecord>(step: T): T => ({ ...step, _id: `${to}:${step.path}`, runId: to });
      for await (const step of steps.find(ofTenant(tenantId, { runId })).sort({ seq: 1 }))
        if (isWanted(step)) await insertIfAbsent(steps, copyOf(step));
      for await (const item of items.find(ofTenant(tenantId, { runId })).sort({ scope: 1, seq: 1 }))
        if (isWanted(item)) await insertIfAbsent(items, copyOf(item));
    },
    /** Removes the results of a run that was not accepted. */
    async removeResults(tenantId: string, runId: string): Promise<void> {
      await steps.deleteMany(ofTenant(tenantId, { runId }));
      await items.deleteMany(ofTenant(tenantId, { runId }));
    },
    /** The bytes of a run's results within lists over items. */
    async itemBytes(tenantId: string, runId: string): Promise<number> {
      let sum = 0;
      const found = items.find(ofTenant(tenantId, { runId })).project<{ bytes?: number }>({ bytes: 1 });
      for await (const { bytes = 0 } of found) sum += bytes;
      return sum;
    },
  };
}

/** What is noted of steps that have begun. */
function makeOpenSteps(db: Db) {
  const open = db.collection<OpenStepRecord>(openStepCollection.name);
  return {
    /** Notes how a step stands that is to go on later, in the place of what was noted of it. */
    async noteOpen(step: OpenStepRecord): Promise<void> {
      const { _id, ...fields } = step;
      await open.replaceOne(ofTenant(step.tenantId, { _id }), fields, { upsert: true });
    },
    /** What is noted of steps in these scopes. */
    openSteps: (tenantId: string, runId: string, scopes: readonly string[]): Promise<OpenStepRecord[]> =>
      open.find(ofTenant(tenantId, { runId, scope: { $in: [...scopes] } })).toArray(),
    /** The same of all steps of a run, without the lists that they go over. */
    shownOpen: (tenantId: string, runId: string): Promise<OpenStepRecord[]> =>
      open
        .find(ofTenant(tenantId, { runId, scope: "" }))
        .project<OpenStepRecord>({
          ...{ tenantId: 1, runId: 1, path: 1, id: 1, type: 1, attempts: 1, startedAt: 1, child: 1, items: 1 },
          ...{ scope: 1, status: 1 },
        })
        .limit(SHOWN_OPEN)
        .toArray(),
    /** The paths of steps of a type that have begun, and were to go on later. */
    async openOfType(tenantId: string, runId: string, type: string): Promise<string[]> {
      const found = open.find(ofTenant(tenantId, { runId, type })).project<{ path: string }>({ path: 1 });
      return (await found.toArray()).map(({ path }) => path);
    },
    /** The jobs that a step and those within it have started, by what is noted of them. */
    async childrenWithin(tenantId: string, runId: string, path: string): Promise<string[]> {
      const id = `${runId}:${path}`;
      const within = { $or: [{ _id: id }, { _id: { $gt: `${id}/`, $lt: `${id}0` } }] }; // 0 comes after /
      const found = open.find(ofTenant(tenantId, { runId, ...within, child: { $exists: true } }));
      return (await found.project<{ child: StepChild }>({ child: 1 }).toArray()).map(({ child }) => child.jobId);
    },
  };
}
