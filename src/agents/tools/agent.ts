import { z } from "zod";
import { takeRun } from "../../definitions/runs.ts";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { derivedId, idSchema } from "../../lib/ids.ts";
import type { AgentRunRecord } from "../../store/agent-run-store.ts";
import type { AgentRecord } from "../../store/agent-store.ts";
import { RunStopped } from "../run-state.ts";
import { countStarted, missingTarget, throwForModel, toolKind } from "./tool.ts";

/** Agents that call agents: a run that a client asked for is at depth 1. */
const MAX_DEPTH = 3;

/** Asks another agent, in a run and audit log of its own, within what this run has left; a repeated call resumes that run. */
export const agent = toolKind({
  schema: z.strictObject({ agentId: idSchema("agent") }),
  async check({ agentId }, { deps, tenantId, field }) {
    if (!(await deps.store.agents.get(tenantId, agentId))) throw missingTarget("agent", `${field}.agentId`);
  },
  async make({ agentId }, setup) {
    const { tool, about, callOf, deps, run: parent, endsAt, execute, inTurn, guard } = setup;
    const target = await deps.store.agents.get(parent.tenantId, agentId);
    const leftMs = () => endsAt.getTime() - Date.now();
    const { name = "gone", description = "" } = target?.definition ?? {};
    return tool(
      async ({ input }, config) => {
        const { idempotencyKey, signal, spend, note, budgets } = callOf(config);
        if (parent.depth >= MAX_DEPTH) throw new RunStopped("max_depth");
        if (!target) throw new AppError("not_found", "The agent is gone.");
        try {
          guard(target.definition.tools, { input });
        } catch (error) {
          throwForModel(error);
        }
        const result = await inTurn(signal, async () => {
          const child = toChild(target, {
            parent,
            input,
            idempotencyKey,
            limits: { timeoutMs: Math.max(100, leftMs()) },
            boundBy: await budgets(),
          });
          // That of an earlier attempt counts already.
          if (!(await deps.store.agentRuns.get(child.tenantId, child._id))) {
            await countStarted(deps, parent);
            await takeRun(deps.quotas, child);
          }
          await deps.store.agentRuns.ensure(child);
          return execute(child._id, signal);
        });
        const { output, status, stopReason, tokensUsed: tokens, outputTokens, costUsd, runId, citations } = result;
        spend({ tokens, outputTokens, costUsd });
        note({ runId, ...(citations && { citations: citations.map((citation) => defined(citation)) }) });
        return status === "stopped" ? `${output}\n[The agent was stopped: ${stopReason}]` : output;
      },
      {
        // The run's own clock ends it first.
        ...about(`Asks the agent "${name}". ${description}`.trim(), Math.max(1, leftMs()) + 5_000),
        schema: z.object({
          input: z.string().min(1).max(100_000).describe("What it is asked, with all that it needs to know"),
        }),
      },
    );
  },
});

type Call = { parent: AgentRunRecord; input: string; idempotencyKey: string } & Pick<AgentRunRecord, "limits"> & {
    boundBy: AgentRunRecord["boundBy"] | undefined;
  };

/** The run of an agent that a call begins, the same at every attempt of the call. */
function toChild(
  { _id: agentId, version: agentVersion, definition }: AgentRecord,
  { parent, input, idempotencyKey, limits, boundBy }: Call,
): AgentRunRecord {
  const { tenantId, jobId, caller, context, _id: parentRunId, rootRunId = parentRunId } = parent;
  const now = new Date();
  return {
    _id: derivedId("run", { at: parent.createdAt, from: idempotencyKey }),
    tenantId,
    agentId,
    agentVersion,
    definition,
    jobId,
    caller,
    input: input.toWellFormed(),
    ...(context === undefined ? {} : { context }),
    limits,
    ...(boundBy && { boundBy }),
    depth: parent.depth + 1,
    parentRunId,
    rootRunId,
    isOpen: true,
    createdAt: now,
    updatedAt: now,
  };
}
