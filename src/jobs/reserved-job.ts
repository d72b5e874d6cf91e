import { newId } from "../lib/ids.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isDuplicateKey } from "../store/writes.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { Jobs } from "./jobs.ts";

/** The job of a call that may be made again: all attempts at the call have its id. */
export type ReservedJob = {
  readonly jobId: string;
  /** Whether an earlier attempt may have made the job. */
  readonly mayBeThere: boolean;
  /**
   * How far this attempt has come: it needs no job; the job may be there; it is there, and goes on; it has failed, and another
   * call may make one of its own.
   */
  state: "unused" | "sought" | "accepted" | "failed";
};

/** The job of an earlier attempt, which nothing takes back any more; null when there is none. From now on the job may be there. */
export async function seekReserved(
  jobs: Pick<Jobs, "adopt">,
  tenantId: string,
  reserved: ReservedJob | undefined,
): Promise<JobRecord | null> {
  if (!reserved) return null;
  if (reserved.state === "unused") reserved.state = "sought";
  const job = reserved.mayBeThere ? await jobs.adopt(tenantId, reserved.jobId) : null;
  if (job) reserved.state = "accepted";
  return job;
}

/**
 * Accepts the work of a job under its id, unless another attempt has; to be called in its tenant's turn.
 * @throws AppError `too_many_concurrent`; what `accept` throws.
 */
export async function acceptReserved(
  { jobs, quotas }: { jobs: Pick<Jobs, "adopt">; quotas: Pick<Quotas, "check"> },
  { tenantId, reserved }: { tenantId: string; reserved: ReservedJob | undefined },
  accept: (jobId: string) => Promise<{ job: JobRecord }>,
): Promise<JobRecord> {
  const known = await seekReserved(jobs, tenantId, reserved);
  if (known) return known;
  await quotas.check(tenantId, "openJobs");
  const accepting = accept(reserved?.jobId ?? newId("job"));
  if (!reserved) return (await accepting).job;
  const { job } = await accepting.catch(async (error: unknown) => {
    const there = isDuplicateKey(error) ? await jobs.adopt(tenantId, reserved.jobId) : null;
    if (!there) throw error;
    return { job: there }; // another attempt was faster
  });
  reserved.state = "accepted";
  return job;
}
