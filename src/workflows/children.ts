import { hasEnded, startChildJob } from "../jobs/child.ts";
import { AppError, fromErrorView } from "../lib/errors.ts";
import { derivedId } from "../lib/ids.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import { fromStoredCaller } from "../tenancy/roles.ts";
import type { Course, Walk } from "./course.ts";
import { type Attempt, noteOpen } from "./course.ts";
import { Waiting } from "./pauses.ts";
import type { ChildEnd, StartChild } from "./steps/step.ts";

/** Errors of a job that another one would have too. */
const lasting = ["budget_exhausted", "quota_exceeded", "compliance_blocked", "not_found"];

/**
 * Starts the job of a step, under an id that follows from the run, the step and its attempt, or finds it; returns how it ended.
 * @throws Waiting until then.
 */
export async function startChild(
  on: Walk,
  course: Course,
  attempt: Attempt,
  { kind, accept, spentOf }: StartChild,
): Promise<ChildEnd> {
  const { deps, run, context } = on;
  const { tenantId, jobId: parentJobId, boundBy } = run;
  const from = `${run._id}:${attempt.path}:${attempt.attempts}`;
  const jobId = derivedId("job", { at: run.createdAt, from });
  let isNew = false;
  const job = await startChildJob(deps.jobs, { tenantId, jobId, parentJobId }, () => {
    isNew = true;
    const caller = fromStoredCaller(tenantId, run.caller);
    const parentStep = { id: attempt.id, path: attempt.path };
    const about = { caller, jobId, parentJobId, parentStep, isInteractive: !course.isNested };
    return accept({ ...about, ...(boundBy && { boundBy }) });
  });
  if (isNew) await context.confirm(); // a worker that has lost the run must not go on with it
  if (course.frame.open.get(attempt.path)?.child?.jobId !== jobId) {
    const { id, path } = attempt;
    await context.step({ event: "started", id, path, child: { ...job.subject, kind, jobId } }, on.progress);
    await noteOpen(on, course.frame, attempt, { status: "waiting", child: { kind, jobId, ids: job.subject } });
  }
  if (!isFinal(job.status)) throw new Waiting(() => hasEnded(deps.jobs, { tenantId, jobId }));
  if (job.status === "completed") return { result: job.result };
  return { failure: toFailure(job), spent: await spentOf?.(job) };
}

function toFailure({ status, error, _id: jobId, kind }: JobRecord): AppError {
  if (status === "cancelled") return new AppError("wrong_state", "The job was cancelled.", { details: { jobId } });
  const { code, message, details } = fromErrorView(error, `The ${kind} failed.`);
  return new AppError(code === "cancelled" ? "wrong_state" : code, message, {
    retryable: !lasting.includes(code),
    details: { ...Object(details), jobId },
  });
}
