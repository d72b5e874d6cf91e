import { z } from "zod";
import { replacementOf, versionFields } from "../definitions/definitions.ts";
import { publishSchema } from "../definitions/published-tools.ts";
import { guardCountsSchema } from "../guards/rules.ts";
import { errorViewSchema } from "../jobs/job-view.ts";
import { idSchema } from "../lib/ids.ts";
import { limiting } from "../lib/limiting.ts";
import { workflowRunEnds } from "../store/workflow-run-store.ts";
import { stepsSchema, stepTypes } from "./steps.ts";

/** The states of a run: three of an open one, and its ends. */
export const workflowRunStates = ["queued", "running", "awaiting_approval", ...workflowRunEnds] as const;

/** Longest input of a run, in characters of JSON. */
const MAX_INPUT = 256_000;

/** The body of `POST /workflows` and `PUT /workflows/:id`. */
export const workflowBodySchema = z.object({
  name: z.string().trim().min(1).max(200),
  description: z.string().trim().max(2_000).optional(),
  steps: stepsSchema,
  inputSchema: limiting(
    z
      .record(z.string(), z.unknown())
      .refine((value) => JSON.stringify(value).length <= 32_000, "is longer than 32000 characters as JSON")
      .optional()
      .describe("JSON Schema that the input of a run must fit"),
  ),
  publish: publishSchema.optional(),
});
export type WorkflowBody = z.output<typeof workflowBodySchema>;

/** PUT may name the version that it replaces; it is refused when another one is there. */
export const workflowReplacementSchema = replacementOf("workflow", workflowBodySchema);
export type WorkflowReplacement = z.output<typeof workflowReplacementSchema>;

/** A workflow, as it is read back. */
export const workflowViewSchema = workflowBodySchema.extend({
  workflowId: idSchema("workflow"),
  steps: z.array(z.looseObject({ type: z.enum(stepTypes) })),
  ...versionFields,
});
export type WorkflowView = z.input<typeof workflowViewSchema>;

/** A workflow in a list. */
export const workflowSummarySchema = workflowViewSchema.omit({ steps: true, inputSchema: true, publish: true }).extend({
  description: z.string().optional().describe("Cut after 300 characters"),
  stepCount: z.number().int().describe("Steps, nested ones included"),
});
export type WorkflowSummary = z.output<typeof workflowSummarySchema>;

/** The body of `POST /workflows/:id/execute`. */
export const executeBodySchema = z.object({
  input: z
    .unknown()
    .refine(
      (value) => value === undefined || JSON.stringify(value).length <= MAX_INPUT,
      `is longer than ${MAX_INPUT} characters as JSON`,
    )
    .optional()
    .describe("Any JSON; expressions read it as `input`"),
});
export type ExecuteInput = z.output<typeof executeBodySchema>;

/** Names that a message shows. */
const SHOWN_FIELDS = 5;

/** The schema of a body that takes unknown fields for a mistake when there is no `input`: they were meant to be in it. */
export function withNamedInput<S extends z.ZodObject>(schema: S) {
  return z.preprocess((body, context) => {
    if (typeof body !== "object" || body === null || Object.hasOwn(body, "input")) return body;
    const unknown = Object.keys(body).filter((name) => !(name in schema.shape));
    if (unknown.length === 0) return body;
    const names = unknown.slice(0, SHOWN_FIELDS).map((name) => name.slice(0, 40));
    context.addIssue({ code: "custom", path: ["input"], message: `is missing: put ${names.join(", ")} into it` });
    return z.NEVER;
  }, schema);
}

export const approverSchema = z.enum(["owner", "admin"]);

const stepRunSchema = z.object({
  id: z.string(),
  type: z.enum(stepTypes),
  path: z
    .string()
    .describe("Where the step stands in the definition, as `2/then/0`; of the item 17 of a list `3/do[17]/0`"),
  status: z.enum(["completed", "failed", "running", "retrying", "waiting", "awaiting_approval", "cancelled"]),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().optional(),
  attempts: z.number().int(),
  output: z.unknown().optional(),
  error: errorViewSchema.optional(),
  finishReason: z.string().optional().describe("How the model's answer ended, of an `ai_completion`"),
  items: z
    .object({ done: z.number().int(), total: z.number().int(), failed: z.number().int() })
    .optional()
    .describe("How far a `for_each` is"),
  child: z
    .looseObject({ kind: z.string(), jobId: idSchema("job") })
    .optional()
    .describe("The job that the step has started, with the id of its run, as `runId`, to be read in its place"),
  tokensUsed: z.number().int().optional(),
  costUsd: z.number().optional(),
});

const runHead = {
  runId: idSchema("workflowRun"),
  workflowId: idSchema("workflow"),
  workflowName: z.string(),
  version: z.number().int(),
  jobId: idSchema("job"),
  status: z.enum(workflowRunStates),
  awaiting: z
    .object({
      approvalId: idSchema("approval"),
      assigneeRole: approverSchema,
      expiresAt: z.iso.datetime(),
      pageUrl: z.string().describe("Where a person can decide"),
    })
    .optional(),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional(),
  finishedAt: z.iso.datetime().optional(),
};

/** A run in a list. */
export const workflowRunSummarySchema = z.object(runHead);
export type WorkflowRunSummary = z.output<typeof workflowRunSummarySchema>;

/** A run with its steps. */
export const workflowRunViewSchema = z.object({
  ...runHead,
  retryOf: idSchema("workflowRun").optional().describe("The run that it goes on from"),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
  error: errorViewSchema.optional(),
  guard: guardCountsSchema.optional(),
  steps: z.array(stepRunSchema),
  tokensUsed: z.number().int(),
  costUsd: z.number(),
});
export type WorkflowRunView = z.output<typeof workflowRunViewSchema>;

/** What a run gives that has ended without an error. */
export const workflowResultSchema = z.object({
  runId: idSchema("workflowRun"),
  workflowId: idSchema("workflow"),
  status: z.enum(["completed", "rejected", "expired"]),
  output: z.unknown().optional(),
  costUsd: z.number().optional().describe("What the models of its steps cost"),
});
export type WorkflowResult = z.output<typeof workflowResultSchema>;
