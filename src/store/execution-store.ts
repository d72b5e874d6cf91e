import type { Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { defineCollection, ofTenant } from "./collection.ts";
import { makeWorkRecords } from "./records.ts";
import { type CountedRun, countRuns } from "./run-use.ts";
import { makeUseStore } from "./use-store.ts";

/** A model call of a run that has ended. */
export type ExecutionStep = {
  /** Name of the call within the run. An answer that is stored is not requested again. */
  step: string;
  role: string;
  model: string;
  status: "completed" | "failed";
  output?: string;
  /** How the answer ended, if it is not whole. */
  finishReason?: "length" | "content_filter";
  error?: ErrorView;
  tokens: number;
  outputTokens?: number;
  costUsd: number;
  logId?: string;
  startedAt: Date;
  finishedAt: Date;
};

/** A run of a composite pattern. */
export type ExecutionRecord = CountedRun & {
  /** API key that the model calls are billed to. */
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
type ExecutionEnd = { result?: object; error?: ErrorView; erase: boolean };

export type ExecutionStore = ReturnType<typeof makeExecutionStore>;

export function makeExecutionStore(db: Db) {
  const executions = db.collection<ExecutionRecord>(executionCollection.name);
  const { update, ...records } = makeWorkRecords(executions, {
    watched: { isOpen: true },
    fields: ["tenantId", "jobId", "profile"],
  });
  const { settle, ...counted } = countRuns(executions, { records, use: makeUseStore(db) });
  /** Reads the fields of an ended run that count besides its input. */
  const findKept = (tenantId: string, id: string) =>
    executions.findOne(ofTenant(tenantId, { _id: id }), { projection: { steps: 1, result: 1, error: 1 } });
  return {
    ...records,
    ...counted,
    /** Records an ended call; false when the run has ended or the call's answer is there already. */
    addStep(tenantId: string, executionId: string, step: ExecutionStep) {
      const unanswered = { steps: { $not: { $elemMatch: { step: step.step, status: "completed" as const } } } };
      return update(tenantId, executionId, { $push: { steps: step } }, unanswered);
    },
    /** Closes an open run. Returns false, and changes nothing, if it has ended. */
    async finish(tenantId: string, executionId: string, { result, error, erase }: ExecutionEnd): Promise<boolean> {
      const now = new Date();
      const erased = erase ? { input: "" as const, "steps.$[].output": "" as const } : {};
      const isEnded = await update(tenantId, executionId, {
        $set: { ...(result ? { result } : {}), ...(error ? { error } : {}), finishedAt: now, updatedAt: now },
        $unset: { isOpen: "" as const, ...erased },
      });
      if (isEnded) await settle(tenantId, executionId, (await findKept(tenantId, executionId)) ?? {});
      return isEnded;
    },
  };
}
