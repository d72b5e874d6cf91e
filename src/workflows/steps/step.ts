import { z } from "zod";
import type { ChildRequest, Spent } from "../../definitions/runs.ts";
import type { CallLimit } from "../../gateway/money/account.ts";
import type { AppError } from "../../lib/errors.ts";
import type { CallOrigin } from "../../store/completion-store.ts";
import type { JobRecord } from "../../store/job-record.ts";
import type { WorkflowRunRecord } from "../../store/workflow-run-store.ts";
import type { OpenStepRecord } from "../../store/workflow-step-store.ts";
import type { WorkflowsDeps } from "../deps.ts";
import type { Schema, Schemas } from "../known-schemas.ts";
import type { JsonValue } from "../scope-texts.ts";
import type { StepField } from "../step-texts.ts";

/** A text that may hold `{{ expression }}`. */
export const template = z.string().min(1).max(200_000);

const stepId = z.string().regex(/^[a-z0-9_]{1,64}$/, "must be 1 to 64 of a to z, 0 to 9 and _");

/** Longest time of a step, in ms: 30 days. */
export const MAX_STEP_MS = 30 * 86_400_000;

/** A time of a step, in ms. */
export const stepMs = z.number().int().min(1).max(MAX_STEP_MS).optional();

/** What every step has. */
export const commonFields = {
  id: stepId
    .optional()
    .describe("The step's name in expressions; default: step_N, N being its place in the definition"),
  retry: z
    .strictObject({
      attempts: z.number().int().min(1).max(10).describe("Attempts, the first one included"),
      backoffMs: z
        .number()
        .int()
        .min(0)
        .max(600_000)
        .describe("Wait before the second attempt; doubles with each further one"),
    })
    .optional(),
  timeoutMs: stepMs.describe("Longest time of the step with all its attempts and waits; then it fails with `timeout`"),
  onError: z
    .union([
      z.strictObject({ goto: stepId.describe("A later step of the same list") }),
      z.strictObject({ default: z.unknown().describe("The step's output then") }),
    ])
    .optional()
    .describe("How the run goes on when the step has failed for good; default: the run fails"),
};
export type CommonFields = z.output<z.ZodObject<typeof commonFields>>;

/** Where a step stands: its name, its path as `2/then/0`, and its field in the definition as `steps[2].then[0]`. */
export type StepPlace = { id: string; path: string; field: string };

/** What one attempt at a step works with. */
export type StepWork<S> = {
  deps: WorkflowsDeps;
  run: WorkflowRunRecord;
  step: S;
  place: StepPlace;
  /** The step's fields, by name, filled in. @throws AppError `invalid_request` with `param`; EvaluatorBusy; the signal's reason. */
  fill(): Promise<Record<string, unknown>>;
  signal: AbortSignal;
  /** When the step began, at its first attempt; and which attempt this is. */
  startedAt: Date;
  attempt: number;
  /** Counts the model calls of this attempt, however it ends. */
  limit: CallLimit;
  /** Starts a job that the step waits for, or finds it. */
  child(start: StartChild): Promise<ChildEnd>;
  /** Walks through the steps within this one. */
  nested: Nested;
};

/** How a step starts another job: the ids of what it runs are those of the job that `accept` begins. */
export type StartChild = {
  kind: string;
  accept(given: ChildRequest): Promise<{ job: JobRecord }>;
  /** What the work of a job used that has ended without a result. */
  spentOf?(job: JobRecord): Promise<Spent | undefined>;
};
/** How a child ended: with its result, or with the error of its job. */
export type ChildEnd = { result: unknown } | { failure: AppError; spent?: Spent | undefined };

/** The output of a list of steps, as JSON. */
type Walked = { output: string };

/** One item of a list: its index, and what the steps for it see by name. */
export type ItemToWalk = {
  index: number;
  values: Readonly<Record<string, JsonValue>>;
  signal: AbortSignal;
  width: number;
};

/** What steps that hold other steps work with. */
export type Nested = {
  /** The results of this step's items are kept in this scope. */
  scope: string;
  /** How many such steps may be under way at once here. */
  width: number;
  /** What is noted of this step. */
  opened: OpenStepRecord | undefined;
  note(fields: Pick<OpenStepRecord, "status"> & Partial<OpenStepRecord>): Promise<void>;
  /** Walks through a branch; what it throws ends or fails the step. */
  walkBranch(name: string, signal: AbortSignal): Promise<Walked>;
  /** Reads what is recorded of these items, so that they can be walked through. */
  readItems(indexes: readonly number[]): Promise<void>;
  /** Walks through the steps for an item, and tells what they used. */
  walkItem(item: ItemToWalk): Promise<Walked & { spent: Spent }>;
  /** Runs tasks, so many at once; one that waits keeps its place. @throws the first failure; TurnOver when some wait. */
  all(tasks: Iterable<(signal: AbortSignal) => Promise<void>>, atOnce: number): Promise<void>;
  /** What the steps for an item have used so far. */
  spentOf(index: number): Spent;
  /** Tells followers how far the items are. */
  report(items: { done: number; total: number }): Promise<void>;
  /** As `share` of the work's context. What is written does not get lost when the run is stopped meanwhile. */
  share<T>(write: () => Promise<T>): Promise<T>;
};

/**
 * `spent`: what it used beside the calls that `limit` counts. `startedAt`: when the step began, where that was at an earlier
 * attempt. `finishReason`: how a model's answer ended. `failure`: the step has failed for good, although it has an output.
 * `items`: of a list over items.
 */
export type StepResult = {
  output: unknown;
  spent?: Spent;
  startedAt?: Date;
  finishReason?: string;
  failure?: AppError;
  /** How the run ends with this step. */
  ends?: "rejected" | "expired";
  items?: { done: number; total: number; failed: number };
};

/** A result without the call that would give it, and the call. */
type Stub = Pick<StepResult, "output" | "finishReason"> & { call: Record<string, unknown> };

/** What a step's output means for the run: an early end, or the branch to walk through. */
type StepEffect = { end?: "rejected" | "expired"; branch?: string };

/** What the checks of definitions work with. */
type CheckDeps = Pick<WorkflowsDeps, "egress" | "rag" | "store" | "agents">;

/** One type of step. A new type needs a file with such a value, its line in `steps.ts`, and a test. */
export type StepKind<S> = {
  schema: z.ZodType<S>;
  /** Its fields, for the documentation. */
  summary: string;
  /** The fields that may hold expressions. */
  fields(step: S): StepField[];
  /** The fields that hold further steps: a list of them, or an object of lists. */
  nests?: readonly string[];
  /** The names by which the steps within see what they are done for. */
  names?(step: S): readonly string[];
  /** What is known of these names; `schemaOf`: of the value of an expression. */
  schemas?(step: S, schemaOf: (expression: string) => Schema | undefined): Schemas;
  /** The model in its field `model`, which has to exist, and to be usable when a run is accepted. */
  model?(step: S): string;
  /** Checks what the schema cannot. @throws AppError whose `param` is below `field`. */
  check?(step: S, at: { deps: CheckDeps; tenantId: string; field: string }): Promise<void> | void;
  /** Whether its `timeoutMs` is its own matter. */
  hasOwnTime?: true;
  /** Attempts of a step that names no number; default 3. */
  attempts?: number;
  /** What a recorded output means for the run; default: nothing. */
  effect?(output: unknown): StepEffect;
  /** Whether the step leaves `previous`, and the output of the run, as they were. */
  isSilent?: boolean;
  /** One attempt, perhaps repeated after a crash. @throws AppError (`retryable`: would another help); the signal's reason. */
  run(work: StepWork<S>): Promise<StepResult>;
  /**
   * What a dry run has in the place of an attempt: its output, and what would be called. Absent: the attempt itself calls nothing.
   * @throws AppError as the attempt would, for what can be known without the call.
   */
  stub?(work: StepWork<S>, filled: Record<string, unknown>): Stub;
};

/** What the model calls of a run are made for. */
export const originOf = ({ jobId, workflowId, _id: runId }: WorkflowRunRecord): CallOrigin => ({
  jobId,
  runId,
  workflowId,
});

/** Declares a type of step; the schema gives the type of its steps. */
export const stepKind = <S>(kind: StepKind<S>): StepKind<S> => kind;

/** A field of text with expressions, where it is given. */
export const textField = (at: string, value: string | undefined): StepField[] =>
  value === undefined ? [] : [{ at, value, kind: "text" }];
