import { AppError, notFound } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { AgentsDeps } from "./deps.ts";
import type { RunEnd } from "./run-state.ts";
import { runToEnd } from "./run-to-end.ts";
import type { RunResult } from "./schemas.ts";

/**
 * Runs an agent to its end; one that was cut goes on from its trail. Ends as completed, as stopped by a limit, or, when a
 * failure is for good or the job was cancelled, by the error.
 * @throws AppError `not_found`; of the model call; the signal's reason.
 */
export async function executeRun(deps: AgentsDeps, context: WorkContext): Promise<RunResult> {
  const { tenantId, recordId: runId } = context;
  const { agentRuns } = deps.store;
  const run = await agentRuns.begin(tenantId, runId);
  if (run) return toResult(await runToEnd(deps, run, { ...context, execute: (inner) => executeRun(deps, inner) }), run);
  const ended = await agentRuns.get(tenantId, runId);
  if (!ended?.end) throw notFound("run");
  return toResult(ended.end, ended); // it ended, and its worker died before it could tell
}

/** The result of a run that has ended. @throws AppError when it failed or was cancelled. */
function toResult(end: RunEnd, run: AgentRunRecord): RunResult {
  const { status, output, reason, steps, tokensUsed, costUsd, head, error } = end;
  if (status !== "completed" && status !== "stopped") {
    const { code = "internal", message = "The run failed.", details } = error ?? {};
    throw new AppError(code, message, { details });
  }
  const { _id: runId, agentId, agentVersion, sessionId } = run;
  return {
    output,
    steps,
    runId,
    tokensUsed,
    costUsd,
    status,
    ...(reason === undefined ? {} : { stopReason: reason }),
    agentId,
    agentVersion,
    ...(sessionId === undefined ? {} : { sessionId }),
    auditHead: head,
  };
}
