import { z } from "zod";
import { type ErrorView, errorCodes, errorTypes } from "../errors.ts";
import { idSchema } from "../ids.ts";
import type { JobSummaryRecord } from "../store/job-store.ts";
import { type JobKind, jobKinds } from "./define-queue.ts";
import { type JobState, jobStates } from "./job-state.ts";

/** What is told to those who follow a job. `end` is the last one and carries the job's view. */
export type JobEvent = { id: number; type: "progress" | "step" | "end"; data: unknown };
/** Something that happened in a job, for those who follow it; `id` is its event's. */
export type JobStep = { id: number; data: Record<string, unknown> };
export type JobProgress = { stage: string; done: number; total: number };

/** A job as it is stored. It holds all that is needed to make its BullMQ job again. */
export type JobRecord = {
  _id: string;
  tenantId: string;
  kind: JobKind;
  queue: string;
  payload: Record<string, unknown>;
  /** Ids of what the job makes, shown in the 202 body, as `{ documentId }`. */
  subject: Record<string, string>;
  status: JobState;
  progress: JobProgress;
  /** Whether a caller waits for it: interactive jobs come before bulk. */
  isInteractive: boolean;
  priority: number;
  /** Tries begun so far. A try that was lost with its worker counts too. */
  attempts: number;
  /** Tries that ended with an error. */
  failures: number;
  /** The trace that submitted it, as W3C `traceparent`; its tries are parts of that. */
  trace?: string;
  createdAt: Date;
  updatedAt: Date;
  startedAt?: Date;
  finishedAt?: Date;
  /** Who runs it now. `token` is new at each claim and fences the earlier holder. */
  lease?: { workerId: string; token: string; expiresAt: Date };
  /** Not before this time; set while a retry waits. */
  notBefore?: Date;
  cancelRequestedAt?: Date;
  /** When reconcile looks at an open job: a while after it was queued, or when its lease ends. */
  checkAt?: Date;
  /** When the store forgets a job that has ended. */
  expireAt?: Date;
  /** The latest steps, in order. */
  steps?: JobStep[];
  /** Sequence number of the last event; each change that followers are told of has one. */
  lastEventId: number;
  result?: unknown;
  error?: ErrorView;
};

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
  status: z.enum(jobStates),
  progress: z.object({ stage: z.string(), done: z.number(), total: z.number() }),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional(),
  finishedAt: z.iso.datetime().optional(),
  attempts: z.number().int(),
  result: z.unknown().optional(),
  error: errorViewSchema.optional(),
});
export type JobView = z.output<typeof jobViewSchema>;

/** A job in a list. */
export const jobSummarySchema = jobViewSchema.omit({ result: true });
export type JobSummary = z.output<typeof jobSummarySchema>;

/** What a client may see of a job: no payload, no lease, no tenant. */
export function toJobView(record: JobRecord): JobView {
  return { ...toJobSummary(record), ...(record.result === undefined ? {} : { result: record.result }) };
}

/** A job in a list: what came of it is read job by job. */
export function toJobSummary(record: JobSummaryRecord): JobSummary {
  return {
    jobId: record._id,
    kind: record.kind,
    status: record.status,
    progress: record.progress,
    createdAt: record.createdAt.toISOString(),
    ...(record.startedAt ? { startedAt: record.startedAt.toISOString() } : {}),
    ...(record.finishedAt ? { finishedAt: record.finishedAt.toISOString() } : {}),
    attempts: record.attempts,
    ...(record.error === undefined ? {} : { error: record.error }),
  };
}
