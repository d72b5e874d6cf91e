import { z } from "zod";
import { AppError } from "../../errors.ts";
import { derivedId } from "../../ids.ts";
import type { AgentRunRecord, AgentRunStore } from "../../store/agent-run-store.ts";
import type { AgentStore } from "../../store/agent-store.ts";
import type { Spending } from "../limits.ts";
import { RunStopped } from "../run-state.ts";
import type { RunResult } from "../schemas.ts";
import { type AgentTool, defineTool } from "./tool.ts";
import type { AgentToolConfig } from "./tool-configs.ts";

/** Agents that call agents: a run that was asked for is at depth 1. */
export const MAX_DEPTH = 3;

export type CallAgentDeps = {
  store: { agents: AgentStore; agentRuns: AgentRunStore };
  parent: AgentRunRecord;
  spending: Spending;
  /** When the parent's own time is over. */
  endsAt: Date;
  execute(runId: string, signal: AbortSignal): Promise<RunResult>;
};

/**
 * Asks another agent, in a run of its own inside this one: with its own trail, within what this run has left. A call that is
 * made again goes on with the same run.
 */
export async function makeCallAgentTool(
  deps: CallAgentDeps,
  named: Pick<AgentTool, "name"> & { description?: string | undefined },
  { agentId }: AgentToolConfig,
): Promise<AgentTool> {
  const { store, parent, spending } = deps;
  const target = await store.agents.get(parent.tenantId, agentId);
  const about = target?.definition.description ?? "";
  return defineTool({
    name: named.name,
    description: named.description ?? `Asks the agent "${target?.definition.name ?? "gone"}". ${about}`.trim(),
    input: z.object({
      input: z.string().min(1).max(100_000).describe("What it is asked, with all that it needs to know"),
    }),
    timeoutMs: Math.max(1, deps.endsAt.getTime() - Date.now()) + 5_000, // the run's own clock ends it first
    async run({ input }, { idempotencyKey, acceptedAt, signal, spend }) {
      if (parent.depth >= MAX_DEPTH) throw new RunStopped("max_depth");
      if (!target) throw new AppError("not_found", "The agent is gone.");
      const child = await store.agentRuns.ensure({
        _id: derivedId("run", { at: acceptedAt, from: idempotencyKey }),
        tenantId: parent.tenantId,
        agentId,
        agentVersion: target.version,
        definition: target.definition,
        jobId: parent.jobId,
        caller: parent.caller,
        input: input.toWellFormed(),
        ...(parent.context === undefined ? {} : { context: parent.context }),
        limits: { timeoutMs: Math.max(100, deps.endsAt.getTime() - Date.now()), ...spending.left() },
        depth: parent.depth + 1,
        parentRunId: parent._id,
        isOpen: true,
        createdAt: new Date(),
        updatedAt: new Date(),
      });
      const { output, status, stopReason, tokensUsed: tokens, costUsd, runId } = await deps.execute(child._id, signal);
      spend({ tokens, costUsd });
      const note = status === "stopped" ? `\n[The agent was stopped: ${stopReason}]` : "";
      return { output: `${output}${note}`, runId };
    },
  });
}
