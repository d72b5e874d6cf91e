import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import { isDuplicateKey } from "../store/writes.ts";
import type { Jobs } from "./jobs.ts";

type Child = { tenantId: string; jobId: string; parentJobId: string };

/**
 * The job that a part of another job's work starts, and waits for: its end wakes that job, and that job's end cancels it. `accept`
 * begins it under its id, which follows from the part, unless an earlier attempt has, or another worker does just now.
 * @throws what `accept` throws.
 */
export async function startChildJob(
  jobs: Pick<Jobs, "find" | "expectChildren">,
  { tenantId, jobId, parentJobId }: Child,
  accept: () => Promise<{ job: JobRecord }>,
): Promise<JobRecord> {
  const there = await jobs.find(tenantId, jobId);
  if (there) return there;
  await jobs.expectChildren({ tenantId, _id: parentJobId });
  try {
    return (await accept()).job;
  } catch (error) {
    const other = isDuplicateKey(error) ? await jobs.find(tenantId, jobId) : null;
    if (other) return other;
    throw error;
  }
}

/** Whether a job has ended, or is gone. */
export async function hasEnded(
  jobs: Pick<Jobs, "statesOf">,
  { tenantId, jobId }: Omit<Child, "parentJobId">,
): Promise<boolean> {
  const state = (await jobs.statesOf(tenantId, [jobId])).get(jobId);
  return state === undefined || isFinal(state);
}
