import { AppError } from "../../errors.ts";
import type { JobRecord } from "../../jobs/job-record.ts";
import { isFinal } from "../../jobs/job-state.ts";
import type { Jobs } from "../../jobs/jobs.ts";

/** One wait is so long, in ms; then the job is looked at again. */
const WAIT_MS = 60_000;

/**
 * A job that a tool call has made, once it has ended, or `isEnough`, asked every `everyMs` (60,000), says so. Whoever stops waiting for good cancels it; a worker that shuts down
 * leaves it to the one that goes on with the run.
 * @throws the signal's reason.
 */
export async function waitForJob(
  jobs: Pick<Jobs, "wait" | "cancel">,
  {
    tenantId,
    jobId,
    signal,
    everyMs = WAIT_MS,
    isEnough = async () => false,
  }: { tenantId: string; jobId: string; signal: AbortSignal; everyMs?: number; isEnough?: () => Promise<boolean> },
): Promise<JobRecord> {
  try {
    for (;;) {
      const job = await jobs.wait(tenantId, jobId, { timeoutMs: everyMs, signal });
      if (isFinal(job.status) || (await isEnough())) return job;
    }
  } catch (error) {
    const mayGoOn = signal.reason instanceof AppError && signal.reason.retryable;
    if (signal.aborted && !mayGoOn) await jobs.cancel(tenantId, jobId).catch(() => undefined); // it may have ended just now
    throw error;
  }
}
