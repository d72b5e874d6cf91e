import { toAcceptedView, toJobError } from "../jobs/job-outcome.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { ToolCall } from "./tool.ts";

/**
 * The result of a job, or, when it takes longer than `TOOL_WAIT_MS`, its ids and where to follow it: clients of the tool
 * server give up after about a minute, and the job must not be lost to them.
 * @throws AppError the job's own error; `wrong_state` when it was cancelled.
 */
export async function waitForResult({ platform, caller, signal }: ToolCall, job: JobRecord): Promise<unknown> {
  const timeoutMs = platform.config.tools.waitMs;
  const record = await platform.jobs.wait(caller.tenantId, job._id, { timeoutMs, signal });
  if (!isFinal(record.status)) return toAcceptedView(record);
  if (record.status === "completed") return record.result;
  throw toJobError(record);
}
