import type { Db, Filter } from "mongodb";
import type { ErrorView } from "../errors.ts";
import { defineCollection, ofTenant } from "./collection.ts";

/** A model call of a run that has ended. */
export type ExecutionStep = {
  /** Its name within the run; an answer that is there is not asked for again. */
  step: string;
  role: string;
  model: string;
  status: "completed" | "failed";
  output?: string;
  error?: ErrorView;
  tokens: number;
  costUsd: number;
  logId?: string;
  startedAt: Date;
  finishedAt: Date;
};

/** A run of a composite pattern. Whether it waits, runs or has ended is on its job. */
export type ExecutionRecord = {
  _id: string;
  tenantId: string;
  jobId: string;
  /** The key that asked for it: model calls are counted to it. */
  keyId: string;
  /** The ids of the area above; the store keeps them as texts. */
  pattern: string;
  profile: string;
  /** Absent once a run of a regulated profile has ended. */
  input?: string;
  models: string[];
  judge: string;
  steps: ExecutionStep[];
  result?: object;
  error?: ErrorView;
  /** Set until the run has ended. */
  isOpen?: true;
  createdAt: Date;
  updatedAt: Date;
  finishedAt?: Date;
  /** When the store forgets it. */
  expireAt: Date;
};

/** What a sweep needs of a run, to close it. */
export type OpenExecution = Pick<ExecutionRecord, "_id" | "tenantId" | "jobId" | "profile">;

export const executionCollection = defineCollection<ExecutionRecord>({
  name: "compositeRuns",
  indexes: [
    { key: { isOpen: 1, updatedAt: 1 }, name: "open", partialFilterExpression: { isOpen: true } },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

/** How a run ends. `erase` takes away what was said in it, by the caller and the models, but not the result. */
export type ExecutionEnd = { result?: object; error?: ErrorView; erase: boolean };

export type ExecutionStore = {
  insert(record: ExecutionRecord): Promise<void>;
  get(tenantId: string, executionId: string): Promise<ExecutionRecord | null>;
  /** Records an ended call, unless the run has ended or the call's answer is there already. */
  addStep(tenantId: string, executionId: string, step: ExecutionStep): Promise<void>;
  /** Closes an open run; one that has ended stays as it is. */
  finish(tenantId: string, executionId: string, end: ExecutionEnd): Promise<void>;
  remove(tenantId: string, executionId: string): Promise<void>;
  /** Over all tenants: open runs that nothing has happened to since `before`, the oldest first. */
  unfinished(query: { before: Date; limit: number }): Promise<OpenExecution[]>;
  /** Marks an open run as looked at. */
  touch(tenantId: string, executionId: string): Promise<void>;
};

export function makeExecutionStore(db: Db): ExecutionStore {
  const executions = db.collection<ExecutionRecord>(executionCollection.name);
  const open = (tenantId: string, executionId: string): Filter<ExecutionRecord> =>
    ofTenant(tenantId, { _id: executionId, isOpen: true as const });
  return {
    insert: async (record) => void (await executions.insertOne(record)),
    get: (tenantId, executionId) => executions.findOne(ofTenant(tenantId, { _id: executionId })),
    async addStep(tenantId, executionId, step) {
      const unanswered = { steps: { $not: { $elemMatch: { step: step.step, status: "completed" as const } } } };
      await executions.updateOne(
        { ...open(tenantId, executionId), ...unanswered },
        { $push: { steps: step }, $set: { updatedAt: new Date() } },
      );
    },
    async finish(tenantId, executionId, { result, error, erase }) {
      const now = new Date();
      const ended = { ...(result ? { result } : {}), ...(error ? { error } : {}), finishedAt: now, updatedAt: now };
      const erased = erase ? { input: "" as const, "steps.$[].output": "" as const } : {};
      await executions.updateOne(open(tenantId, executionId), {
        $set: ended,
        $unset: { isOpen: "" as const, ...erased },
      });
    },
    remove: async (tenantId, executionId) =>
      void (await executions.deleteOne(ofTenant(tenantId, { _id: executionId }))),
    unfinished: ({ before, limit }) =>
      executions
        .find({ isOpen: true, updatedAt: { $lt: before } })
        .project<OpenExecution>({ tenantId: 1, jobId: 1, profile: 1 })
        .sort({ updatedAt: 1 })
        .limit(limit)
        .toArray(),
    touch: async (tenantId, executionId) =>
      void (await executions.updateOne(open(tenantId, executionId), { $set: { updatedAt: new Date() } })),
  };
}
