import { defined } from "../lib/defined.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { OpenStepRecord, WorkflowStepRecord } from "../store/workflow-step-store.ts";
import { type JsonValue, type ScopeTexts, type StepText, toJsonValue } from "./scope-texts.ts";
import type { PlannedStep } from "./steps.ts";

/** What all steps of a run may read. */
export type RunTexts = Pick<ScopeTexts, "input" | "run">;

/** What all steps of a run may read, of its record. */
export function toRunTexts(run: WorkflowRunRecord): RunTexts {
  const { _id: runId, workflowId, version, createdAt, caller } = run;
  const about = { runId, workflowId, version, createdAt: createdAt.toISOString(), startedBy: caller.subject };
  return { input: toJsonValue(run.input), run: toJsonValue(JSON.stringify(about)) };
}

/**
 * The steps of a run outside of lists over items, or those for one item: the results that are recorded, and what expressions see
 * of them and of the frame around. A frame has as many steps as the definition, at most.
 */
export type Frame = {
  /** Of its results in the store. */
  scope: string;
  /** What its paths begin with in the definition, and in the run. */
  from: string;
  to: string;
  texts: RunTexts;
  /** The frame around an item's. */
  outer?: Frame | undefined;
  /** What its steps see by name, besides what all steps do. */
  values?: Readonly<Record<string, JsonValue>> | undefined;
  /** By path: its results, and what is noted of steps that have begun. */
  results: Map<string, WorkflowStepRecord>;
  open: Map<string, OpenStepRecord>;
  /** What expressions see of its results, by the ids of the steps. */
  seen: Map<string, StepText>;
  /** The place of the latest result. */
  seq: number;
  /** How many bytes the store keeps for its results. */
  bytes: number;
};

type FrameSetup = Pick<Frame, "scope" | "from" | "to" | "texts" | "outer" | "values"> & {
  results: readonly WorkflowStepRecord[];
  open: readonly OpenStepRecord[];
};

export function openFrame({ results, open, values, outer, ...about }: FrameSetup): Frame {
  const named = outer?.values || values ? { values: { ...outer?.values, ...values } } : {};
  const known = { results: new Map(), seen: new Map(), open: new Map(open.map((step) => [step.path, step])) };
  const frame: Frame = { ...about, outer, ...named, ...known, seq: -1, bytes: 0 };
  for (const result of results) addResult(frame, result);
  return frame;
}

/** Adds a result that is recorded. */
export function addResult(frame: Frame, result: WorkflowStepRecord): void {
  const { path, id, seq, bytes = 0, status, error, finishReason } = result;
  frame.results.set(path, result);
  frame.seq = Math.max(frame.seq, seq);
  frame.bytes += bytes;
  const said = error && { code: error.code, message: error.message };
  frame.seen.set(id, defined({ status, output: toJsonValue(result.output), finishReason, error: said }));
}

/** A step's path in the run. */
export const pathIn = ({ from, to }: Frame, { path }: Pick<PlannedStep, "path">) => `${to}${path.slice(from.length)}`;

/** What the expressions of the next step may read. */
export function toScope(frame: Frame, previous: JsonValue): ScopeTexts {
  const { texts, values } = frame;
  const steps = frame.outer === undefined ? frame.seen : allSeen(frame);
  return { ...texts, steps, previous, ...(values === undefined ? {} : { values }) };
}

const allSeen = ({ outer, seen }: Frame): Map<string, StepText> =>
  outer === undefined ? seen : new Map([...allSeen(outer), ...seen]);
