import { z } from "zod";
import { guardCountsSchema } from "../guards/rules.ts";
import { defined, toView } from "../lib/defined.ts";
import { errorCodes, errorTypes } from "../lib/errors.ts";
import { idSchema } from "../lib/ids.ts";
import type { JobRecord } from "../store/job-record.ts";
import { jobStates } from "../store/job-state.ts";
import type { JobSummaryRecord } from "../store/job-store.ts";
import { jobKinds } from "./queues.ts";

/** What the followers of a job get. `end` is the last one and carries the job's view. */
export type JobEvent = { id: number; type: "progress" | "step" | "end"; data: unknown };

export const errorViewSchema = z.object({
  type: z.enum(errorTypes),
  code: z.enum(Object.keys(errorCodes) as [keyof typeof errorCodes]),
  message: z.string(),
  param: z.string().optional(),
  details: z.unknown().optional(),
});

/** A job as `GET /jobs/:id` shows it. */
export const jobViewSchema = z.object({
  jobId: idSchema("job"),
  kind: z.enum(jobKinds),
  about: z
    .record(z.string(), z.string())
    .describe("Ids of what it works on, and a document's collection, as `{ documentId, collection }`"),
  title: z
    .string()
    .optional()
    .describe("What it works on: a document's title, an agent's or a workflow's name, a model, a file of requests"),
  input: z
    .string()
    .optional()
    .describe("The first line of what it was given, of runs of agents, workflows and patterns"),
  startedBy: z.string().optional().describe("The subject of the key that asked for it"),
  keyId: z.string().optional().describe("That key"),
  requestId: z.string().optional().describe("The `x-request-id` of the request that asked for it"),
  parentJobId: idSchema("job").optional().describe("The job that has started it and waits for its end"),
  parentStep: z
    .object({
      id: z.string(),
      path: z.string().describe("As of the run's steps; in a list over items as `3/do[17]/0`"),
    })
    .optional()
    .describe(
      "The step of that job's run which has started it; of an agent's run the tool, and the idempotency key of its call",
    ),
  status: z.enum(jobStates),
  progress: z.object({ stage: z.string(), done: z.number(), total: z.number() }),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional(),
  finishedAt: z.iso.datetime().optional(),
  attempts: z.number().int(),
  traceId: z.string().optional().describe("The W3C trace of its work, where the operator collects traces"),
  costUsd: z.number().optional().describe("What its models cost, once it has ended with a result that says so"),
  guard: guardCountsSchema.optional(),
  result: z.unknown().optional(),
  error: errorViewSchema.optional(),
});
export type JobView = z.output<typeof jobViewSchema>;

/** A job in a list. */
export const jobSummarySchema = jobViewSchema.omit({ result: true });
export type JobSummary = z.output<typeof jobSummarySchema>;

/** What a client may see of a job: no payload, no lease, no tenant. */
export function toJobView(record: JobRecord): JobView {
  return { ...toJobSummary(record), ...defined({ result: record.result }) };
}

/** A job's progress as it is shown. If the job ended without a result, its end replaces the stage that it had reached. */
export function toProgressView({ status, progress }: Pick<JobRecord, "status" | "progress">) {
  if (status === "failed" || status === "cancelled") return { ...progress, stage: status };
  return status === "running" && progress.stage === "queued" ? { ...progress, stage: status } : progress;
}

const costSchema = z.object({ costUsd: z.number().optional().catch(undefined) }).catch({});

/** A job in a list, without its result, which is read job by job. */
export function toJobSummary(record: JobSummaryRecord): JobSummary {
  const { subject: about, title, input, startedBy, keyId, requestId, parentJobId, parentStep } = record;
  const { costUsd } = costSchema.parse(record.result);
  const traceId = record.trace?.split("-")[1]; // a `traceparent` is version, trace, span and flags
  const { _id: jobId, kind, status, createdAt, startedAt, finishedAt, attempts, guard, error } = record;
  return toView({
    jobId,
    kind,
    about,
    title,
    input,
    startedBy,
    keyId,
    requestId,
    parentJobId,
    parentStep,
    status,
    progress: toProgressView(record),
    createdAt,
    startedAt,
    finishedAt,
    attempts,
    traceId,
    costUsd,
    guard,
    error,
  });
}
