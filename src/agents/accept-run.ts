import { AppError, notFound } from "../errors.ts";
import { isUsedUp } from "../gateway/money/budget.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { submitWork, type Work } from "../jobs/work.ts";
import type { AgentRunRecord, OpenAgentRun } from "../store/agent-run-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { AgentsDeps } from "./deps.ts";
import { MAX_RUN_MS, type RunInput } from "./schemas.ts";

export type RunAcceptance = { caller: Caller; agentId: string; body: RunInput; isInteractive: boolean; jobId: string };

/**
 * Records a run of an agent as it is now, then submits its job. What can be refused is refused here.
 * @throws AppError `not_found`, `provider_not_configured`, `provider_key_unreadable`, `budget_exhausted`, `unavailable`.
 */
export async function acceptRun(
  deps: AgentsDeps & { work: Work<OpenAgentRun> },
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
  await deps.store.agentRuns.ensure(run);
  return { job: await submitWork(deps.jobs, deps.work, { record: run, isInteractive }), runId: run._id };
}

async function checkModel({ gateway }: AgentsDeps, tenantId: string, name: string): Promise<void> {
  const model = await gateway.resolveModel(tenantId, name);
  if (gateway.findModel(model)?.outputCostPer1k === 0) return;
  const budget = await gateway.budget(tenantId);
  if (budget === null || !isUsedUp(budget)) return;
  throw new AppError("budget_exhausted", `The budget of ${budget.limitUsd} USD for ${budget.month} is used up.`, {
    details: budget,
  });
}
