import { z } from "zod";
import type { Spent } from "../../definitions/runs.ts";
import type { AppError } from "../../lib/errors.ts";
import type { CallOrigin } from "../../store/completion-store.ts";
import type { WorkflowRunRecord } from "../../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "../deps.ts";
import type { StepField } from "../step-texts.ts";

/** A text that may hold `{{ expression }}`. */
export const template = z.string().min(1).max(200_000);

/** What every step has. */
export const commonFields = {
  id: z
    .string()
    .regex(/^[a-z0-9_]{1,64}$/, "must be 1 to 64 of a to z, 0 to 9 and _")
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
};

/**
 * `startedAt`: when the step began, where that was at an earlier attempt. `finishReason`: how a model's answer ended.
 * `failure`: the step has failed for good, although it has an output.
 */
export type StepResult = {
  output: unknown;
  spent?: Spent;
  startedAt?: Date;
  finishReason?: string;
  failure?: AppError;
};

/** What a step's output means for the run: an early end, or the branch to walk through. */
export type StepEffect = { end?: "rejected" | "expired"; branch?: string };

/** One type of step. A new type needs a file with such a value, its line in `steps.ts`, and a test. */
export type StepKind<S> = {
  schema: z.ZodType<S>;
  /** Its fields, for the documentation. */
  summary: string;
  /** The fields that may hold expressions. */
  fields(step: S): StepField[];
  /** The fields that hold further steps. */
  nests?: readonly string[];
  /** The model in its field `model`, which has to exist, and to be usable when a run is accepted. */
  model?(step: S): string;
  /** Checks what the schema cannot. @throws AppError whose `param` is below `field`. */
  check?(
    step: S,
    at: { deps: Pick<WorkflowsDeps, "egress" | "rag">; tenantId: string; field: string },
  ): Promise<void> | void;
  /** Attempts of a step that names no number; default 3. */
  attempts?: number;
  /** What a recorded output means for the run; default: nothing. */
  effect?(output: unknown): StepEffect;
  /** Whether the step leaves `previous`, and the output of the run, as they were. */
  isSilent?: boolean;
  /** One attempt, perhaps repeated after a crash. @throws AppError (`retryable`: would another help); the signal's reason. */
  run(work: StepWork<S>): Promise<StepResult>;
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
