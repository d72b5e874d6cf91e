import { z } from "zod";
import { AppError } from "../../errors.ts";
import { derivedId, idSchema } from "../../ids.ts";
import { takeRun } from "../../runs.ts";
import type { AgentRunRecord } from "../../store/agent-run-store.ts";
import { RunStopped } from "../run-state.ts";
import { defineTool, missingTarget, throwForModel, toolKind } from "./tool.ts";

/** Agents that call agents: a run that a client asked for is at depth 1. */
const MAX_DEPTH = 3;

/** Asks another agent, in a run and audit log of its own, within what this run has left; a repeated call resumes that run. */
export const agent = toolKind({
  schema: z.strictObject({ agentId: idSchema("agent") }),
  async check({ agentId }, { deps, tenantId, field }) {
    if (!(await deps.store.agents.get(tenantId, agentId))) throw missingTarget("agent", `${field}.agentId`);
  },
  async make({ agentId }, setup) {
    const { deps, run: parent, usage, endsAt, execute, guard } = setup;
    const target = await deps.store.agents.get(parent.tenantId, agentId);
    const leftMs = () => endsAt.getTime() - Date.now();
    const { name = "gone", description = "" } = target?.definition ?? {};
    return defineTool(setup, {
      description: `Asks the agent "${name}". ${description}`.trim(),
      input: z.object({
        input: z.string().min(1).max(100_000).describe("What it is asked, with all that it needs to know"),
      }),
      timeoutMs: Math.max(1, leftMs()) + 5_000, // the run's own clock ends it first
      async run({ input }, { idempotencyKey, signal, spend }) {
        if (parent.depth >= MAX_DEPTH) throw new RunStopped("max_depth");
        if (!target) throw new AppError("not_found", "The agent is gone.");
        try {
          guard(target.definition.tools, { input });
        } catch (error) {
          throwForModel(error);
        }
        const { tenantId, jobId, caller, context, _id: parentRunId } = parent;
        const child: AgentRunRecord = {
          _id: derivedId("run", { at: parent.createdAt, from: idempotencyKey }),
          tenantId,
          agentId,
          agentVersion: target.version,
          definition: target.definition,
          jobId,
          caller,
          input: input.toWellFormed(),
          ...(context === undefined ? {} : { context }),
          limits: { timeoutMs: Math.max(100, leftMs()), ...usage.left() },
          depth: parent.depth + 1,
          parentRunId,
          isOpen: true,
          createdAt: new Date(),
          updatedAt: new Date(),
        };
        try {
          await takeRun(deps.quotas, child);
        } catch (error) {
          if (!(await deps.store.agentRuns.get(tenantId, child._id))) throw error; // that of an earlier attempt counts already
        }
        await deps.store.agentRuns.ensure(child);
        const result = await execute(child._id, signal);
        const { output, status, stopReason, tokensUsed: tokens, outputTokens, costUsd, runId } = result;
        spend({ tokens, outputTokens, costUsd });
        const note = status === "stopped" ? `\n[The agent was stopped: ${stopReason}]` : "";
        return { output: `${output}${note}`, runId };
      },
    });
  },
});
