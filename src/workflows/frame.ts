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

/** Where a frame is. `scope`: of its results in the store; `from` and `to`: what its paths begin with in the definition, and in the run. */
type FramePlace = { scope: string; from: string; to: string };

type FrameSetup = FramePlace & {
  texts: RunTexts;
  /** The frame around an item's. */
  outer?: Pick<Frame, "steps" | "values">;
  values?: Readonly<Record<string, JsonValue>>;
  results: readonly WorkflowStepRecord[];
  open: readonly OpenStepRecord[];
};

export type Frame = {
  scope: string;
  /** What its steps see by name, besides what all steps do. */
  values: Readonly<Record<string, JsonValue>>;
  /** The results that its steps may read. */
  steps(): ReadonlyMap<string, StepText>;
  /** A step's path in the run. */
  pathOf(planned: Pick<PlannedStep, "path">): string;
  resultOf(path: string): WorkflowStepRecord | undefined;
  openOf(path: string): OpenStepRecord | undefined;
  noteOpen(step: OpenStepRecord): void;
  /** The place of the next result. */
  nextSeq(): number;
  /** Adds a result that was recorded just now. */
  add(result: WorkflowStepRecord): void;
  /** Results so far. */
  count(): number;
  results(): WorkflowStepRecord[];
  toScope(previous: JsonValue): ScopeTexts;
};

/**
 * The steps of a run outside of lists over items, or those for one item: the results that are recorded, and what expressions see
 * of them and of the frame around. A frame has as many steps as the definition, at most.
 */
export function openFrame({ scope, from, to, texts, outer, values = {}, results, open }: FrameSetup): Frame {
  const byPath = new Map<string, WorkflowStepRecord>();
  const opened = new Map(open.map((step) => [step.path, step]));
  const outputs = new Map<string, StepText>();
  const seen = { ...outer?.values, ...values };
  const add = (result: WorkflowStepRecord) => {
    byPath.set(result.path, result);
    const { status, error, finishReason } = result;
    const said = error && { code: error.code, message: error.message };
    outputs.set(result.id, defined({ status, output: toJsonValue(result.output), finishReason, error: said }));
  };
  for (const result of results) add(result);
  let seq = Math.max(-1, ...results.map((result) => result.seq));
  const steps = (): ReadonlyMap<string, StepText> =>
    outer === undefined ? outputs : new Map([...outer.steps(), ...outputs]);
  return {
    scope,
    values: seen,
    steps,
    pathOf: ({ path }: Pick<PlannedStep, "path">) => `${to}${path.slice(from.length)}`,
    resultOf: (path: string) => byPath.get(path),
    openOf: (path: string) => opened.get(path),
    noteOpen: (step: OpenStepRecord) => void opened.set(step.path, step),
    nextSeq: () => {
      seq += 1;
      return seq;
    },
    add,
    count: () => byPath.size,
    results: () => [...byPath.values()],
    toScope: (previous: JsonValue): ScopeTexts => ({
      ...texts,
      ...{ steps: steps(), previous },
      ...(Object.keys(seen).length === 0 ? {} : { values: seen }),
    }),
  };
}
