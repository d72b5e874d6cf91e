import { defined } from "../lib/defined.ts";
import { AppError, fromErrorView } from "../lib/errors.ts";
import type { JobRecord } from "../store/job-record.ts";

/** The reply for a job that continues: the ids of what it makes, and where to follow it. */
export function toAcceptedView(job: JobRecord) {
  return { ...job.subject, jobId: job._id, kind: job.kind, status: job.status, statusUrl: `/jobs/${job._id}` };
}

/** Where a job is that waits for a person's decision. */
export const AWAITING_APPROVAL = "awaiting_approval";

/** Whether a job waits for a person, and not for a time, its next attempt or, as a chat, the end of its batch. */
export const awaitsPerson = ({ status, progress }: JobRecord) =>
  status === "awaiting" && progress.stage === AWAITING_APPROVAL;

/** The error of a job that ended without a result: its own, or `wrong_state` when it was cancelled. */
export function toJobError(record: JobRecord): AppError {
  const ids = { jobId: record._id, ...record.subject };
  if (record.status === "cancelled") return new AppError("wrong_state", "The job was cancelled.", { details: ids });
  const { code, message, param, details } = fromErrorView(record.error, "The job failed.");
  return new AppError(code, message, { details: { ...asObject(details), ...ids }, ...defined({ param }) });
}

function asObject(details: unknown): object {
  if (details === undefined) return {};
  return typeof details === "object" && details !== null && !Array.isArray(details) ? details : { cause: details };
}
