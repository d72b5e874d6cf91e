import { AppError, notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { agentRunsQueue } from "../jobs/queues.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import { isStoreUnavailable } from "../store/connect.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { AgentsDeps } from "./deps.ts";
import { MAX_RUN_MS, type RunInput } from "./schemas.ts";

export type RunAcceptance = { caller: Caller; agentId: string; body: RunInput; isInteractive: boolean; jobId: string };

/**
 * Records a run of an agent as it is now, then submits its job. What can be refused is refused here.
 * @throws AppError `not_found`, `provider_not_configured`, `provider_key_unreadable`, `budget_exhausted`, `unavailable`.
 */
export async function acceptRun(
  deps: AgentsDeps,
  { caller, agentId, body, isInteractive, jobId }: RunAcceptance,
): Promise<{ job: JobRecord; runId: string }> {
  const { tenantId, keyId, subject, role } = caller;
  const agent = await deps.store.agents.get(tenantId, agentId);
  if (!agent) throw notFound("agent");
  const { definition, version: agentVersion } = agent;
  await checkModel(deps, tenantId, definition.model);
  const { input, sessionId, context, budget } = body;
  const now = new Date();
  const run: AgentRunRecord = {
    _id: newId("run"),
    tenantId,
    agentId,
    agentVersion,
    definition,
    jobId,
    caller: { keyId, subject, role },
    input: input.toWellFormed(),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(context === undefined ? {} : { context: JSON.stringify(context).toWellFormed() }),
    limits: {
      timeoutMs: budget?.timeoutMs ?? MAX_RUN_MS,
      ...(budget?.maxTokens === undefined ? {} : { maxTokens: budget.maxTokens }),
      ...(budget?.maxCostUsd === undefined ? {} : { maxCostUsd: budget.maxCostUsd }),
    },
    depth: 1,
    isOpen: true,
    createdAt: now,
    updatedAt: now,
  };
  const runId = run._id;
  await deps.store.agentRuns.ensure(run);
  try {
    const job = await deps.jobs.submit(agentRunsQueue, {
      tenantId,
      jobId,
      payload: () => ({ v: 1 as const, jobId, tenantId, runId }),
      subject: { runId },
      isInteractive,
    });
    return { job, runId };
  } catch (error) {
    // While the store is away nothing can be tidied, and the caller waits: the sweep does it.
    if (!isStoreUnavailable(error)) await deps.store.agentRuns.remove(tenantId, runId);
    throw error;
  }
}

async function checkModel({ gateway }: AgentsDeps, tenantId: string, name: string): Promise<void> {
  const model = await gateway.resolveModel(tenantId, name);
  if (gateway.findModel(model)?.outputCostPer1k === 0) return;
  const budget = await gateway.budget(tenantId);
  if (budget === null || budget.leftUsd > 0) return;
  throw new AppError("budget_exhausted", `The budget of ${budget.limitUsd} USD for ${budget.month} is used up.`, {
    details: budget,
  });
}
