import { z } from "zod";
import { outputTokensSchema } from "../definitions/runs.ts";
import { guardCountsSchema } from "../guards/rules.ts";
import { errorViewSchema } from "../jobs/job-view.ts";
import { idSchema } from "../lib/ids.ts";
import { jobStates } from "../store/job-state.ts";
import { MAX_MODELS, patternIds } from "./patterns.ts";
import { profileIds } from "./profiles.ts";

const MAX_INPUT_CHARACTERS = 200_000;

/** The body of `POST /composite/execute`. */
export const compositeBodySchema = z.object({
  pattern: z.enum(patternIds),
  profile: z.enum(profileIds),
  input: z.string().max(MAX_INPUT_CHARACTERS).regex(/\S/, "must hold more than blanks"),
  models: z
    .array(z.string().min(1).max(200))
    .max(MAX_MODELS)
    .nullish()
    .describe("The members, in order, instead of the profile's own; the first one also judges; too few serve again"),
});
export type CompositeInput = z.output<typeof compositeBodySchema>;

const dissentSchema = z.object({ models: z.array(z.string()), answer: z.string() });

const incomplete = z.enum(["length", "content_filter"]);

/** What a finished run gives. */
export const compositeResultSchema = z.object({
  executionId: idSchema("execution"),
  pattern: z.enum(patternIds),
  profile: z.enum(profileIds),
  output: z.string(),
  finishReason: incomplete.optional().describe("Why the answer is not whole; absent when it is"),
  regulated: z.boolean(),
  disclaimer: z.string().optional(),
  stepsExecuted: z.number().int().describe("Model calls that were made, those that failed included"),
  models: z.array(z.string()),
  tokensUsed: z.number().int(),
  outputTokens: outputTokensSchema,
  costUsd: z.number(),
  agreement: z.number().min(0).max(1).optional(),
  dissent: z.array(dissentSchema).optional(),
  warnings: z.array(z.string()).optional(),
});
export type CompositeResult = z.output<typeof compositeResultSchema>;

const stepSchema = z.object({
  index: z.number().int(),
  step: z.string(),
  role: z.string(),
  model: z.string(),
  status: z.enum(["completed", "failed"]),
  output: z.string().optional().describe("Not kept of regulated profiles once the run has ended"),
  finishReason: incomplete.optional(),
  error: errorViewSchema.optional(),
  tokens: z.number().int(),
  outputTokens: outputTokensSchema,
  costUsd: z.number(),
  logId: idSchema("log").optional(),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
});

/** A run with its steps, as `GET /composite/executions/:id` shows it. */
export const executionViewSchema = z.object({
  executionId: idSchema("execution"),
  jobId: idSchema("job"),
  pattern: z.enum(patternIds),
  profile: z.enum(profileIds),
  status: z.enum(jobStates),
  models: z.array(z.string()),
  input: z.string().optional().describe("Not kept of regulated profiles once the run has ended"),
  steps: z.array(stepSchema),
  result: compositeResultSchema.optional(),
  error: errorViewSchema.optional(),
  guard: guardCountsSchema.optional(),
  createdAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().optional(),
});
export type ExecutionView = z.output<typeof executionViewSchema>;

export const patternSchema = z.object({
  id: z.enum(patternIds),
  name: z.string(),
  description: z.string(),
  minModels: z.number().int(),
  defaultModels: z.number().int(),
  typicalSteps: z.number().int(),
});

export const profileSchema = z.object({
  id: z.enum(profileIds),
  name: z.string(),
  regulated: z.boolean(),
  guards: z.array(z.string()),
  disclaimer: z.string().optional(),
});
