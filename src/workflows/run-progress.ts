import { defined } from "../lib/defined.ts";
import type { WorkflowRunRecord, WorkflowStepRecord } from "../store/workflow-run-store.ts";
import { type ScopeTexts, type StepText, toJsonValue } from "./scope-texts.ts";
import { kindOf, type PlannedStep } from "./steps.ts";

export type RunProgress = ReturnType<typeof openProgress>;

/** How far a run has come: the results that are recorded, and what expressions see of them. */
export function openProgress(run: WorkflowRunRecord, recorded: readonly WorkflowStepRecord[]) {
  const { _id: runId, workflowId, version, createdAt, caller } = run;
  const about = { runId, workflowId, version, createdAt: createdAt.toISOString(), startedBy: caller.subject };
  const base = { input: toJsonValue(run.input), run: toJsonValue(JSON.stringify(about)) };
  const byPath = new Map<string, WorkflowStepRecord>();
  const outputs = new Map<string, StepText>();
  let bytes = 0;
  let previous = toJsonValue(undefined);
  let last: string | undefined;
  const add = (result: WorkflowStepRecord) => {
    byPath.set(result.path, result);
    bytes += result.bytes ?? 0;
    const output = toJsonValue(result.output);
    outputs.set(result.id, defined({ status: result.status, output, finishReason: result.finishReason }));
    if (kindOf(result).isSilent) return;
    previous = output;
    last = result.output;
  };
  for (const result of recorded) add(result);
  return {
    /** The recorded result of a step; undefined when it has none yet. */
    resultOf: ({ path }: PlannedStep) => byPath.get(path),
    /** Adds a result that was recorded just now. */
    add,
    /** Results so far. */
    count: () => byPath.size,
    /** The bytes of these in the store. */
    bytes: () => bytes,
    scope: (): ScopeTexts => ({ ...base, steps: outputs, previous }),
    /** The JSON output of the last step that has one to pass on; undefined before the first. */
    output: () => last,
  };
}
