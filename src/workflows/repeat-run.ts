import { newRun, type RunRequest } from "../definitions/runs.ts";
import { AppError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowStepRecord } from "../store/workflow-step-store.ts";
import { toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { eachStep, planSteps } from "./steps.ts";

/** Who has a run repeated, and the job that is to do so. */
export type RepeatRequest = Omit<RunRequest<unknown>, "body">;

/**
 * The record of a run that goes on where another one has failed or was cancelled: with its definition and its input, and with a
 * copy of what it has done. @throws AppError `wrong_state` for a run that has not ended so.
 */
export function toRepeated(old: WorkflowRunRecord, request: RepeatRequest): WorkflowRunRecord {
  const status = old.end?.status;
  if (status !== "failed" && status !== "cancelled") {
    const message = "Only a run that has failed, or was cancelled, is started again.";
    throw new AppError("wrong_state", message, { details: { status: status ?? "open" } });
  }
  const { workflowId, version, name, definition, input, callback } = old;
  return {
    ...{ _id: newId("workflowRun"), ...newRun({ ...request, body: undefined }), isWatched: true },
    ...{ workflowId, version, name, definition, retryOf: old._id },
    ...(input === undefined ? {} : { input }),
    ...(callback === undefined ? {} : { callback }),
  };
}

/** Copies the results of a run that need not come about again: those that completed, or whose error the run went on after. */
export async function copyResults(
  { store }: Pick<WorkflowsDeps, "store">,
  old: WorkflowRunRecord,
  to: WorkflowRunRecord,
): Promise<void> {
  const jumps = new Set(
    [...eachStep(planSteps(toDefinition(old).steps))].flatMap(({ id, step: { onError } }) =>
      typeof onError === "object" && "goto" in onError ? [id] : [],
    ),
  );
  const isDone = ({ status, output, id }: WorkflowStepRecord) =>
    status === "completed" || output !== undefined || jumps.has(id);
  await store.workflowRuns.copyResults(old, to._id, isDone);
}
