import type { Jobs } from "./jobs/jobs.ts";
import type { JobState } from "./store/job-state.ts";
import { mapPage, type Page } from "./store/page.ts";

/** The state of a run that has not ended, by the state of its job. */
export function openRunState(job: JobState | undefined): "queued" | "running" | "failed" | "cancelled" {
  switch (job) {
    case "running":
    case "awaiting":
    case "completed": // the run's own end is about to be written
      return "running";
    case "queued":
    case "cancelled":
      return job;
    case "failed":
    case undefined:
      return "failed";
    default:
      return job satisfies never;
  }
}

/** Summaries of a page of runs; `toSummary` gets the state of the job of each run that has not ended. */
export async function listRuns<R extends { jobId: string; end?: unknown }, S>(
  jobs: Pick<Jobs, "statesOf">,
  { tenantId, page, toSummary }: { tenantId: string; page: Page<R>; toSummary(run: R, job: JobState | undefined): S },
): Promise<Page<S>> {
  const open = page.data.flatMap(({ end, jobId }) => (end === undefined ? [jobId] : []));
  const states = await jobs.statesOf(tenantId, open);
  return mapPage(page, (run) => toSummary(run, states.get(run.jobId)));
}
