import { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { idSchema } from "../../lib/ids.ts";
import type { Workflows } from "../../workflows/workflows.ts";
import { jobOfCall, missingTarget, START_TIMEOUT_MS, toolKind } from "./tool.ts";

/** Most of an input's schema that the description holds, in characters. */
const MAX_SCHEMA = 4_000;

/**
 * Starts a run of a workflow, as a job of its own. The agent's run is suspended until its end, which may take days if it awaits a
 * person. A call that is made again finds the same run.
 */
export const workflow = toolKind({
  schema: z.strictObject({ workflowId: idSchema("workflow") }),
  async check({ workflowId }, { deps, tenantId, field }) {
    if (!(await deps.store.workflows.get(tenantId, workflowId))) throw missingTarget("workflow", `${field}.workflowId`);
  },
  async make({ workflowId }, setup) {
    const { tool, about, callOf, caller, run } = setup;
    const { workflows } = setup.deps;
    return tool(
      async ({ input }, config) => {
        const call = callOf(config);
        const job = await jobOfCall(setup, call, (given) =>
          workflows.accept({ ...given, workflowId, body: { input } }),
        );
        const runId = job.subject.runId ?? "";
        const { tokensUsed: tokens, costUsd, status: state, output } = await workflows.runOf(caller, workflowId, runId);
        call.spend({ tokens, costUsd });
        const { status, error } = job;
        if (status === "failed" || status === "cancelled") {
          throw new AppError("provider_failed", error?.message ?? "The run was cancelled.");
        }
        return JSON.stringify({ runId, status: state, output });
      },
      {
        ...about(await describe(workflows, run.tenantId, workflowId), START_TIMEOUT_MS, true),
        schema: z.object({ input: z.unknown().describe("The run's input, as JSON") }),
      },
    );
  },
});

async function describe(workflows: Pick<Workflows, "get">, tenantId: string, workflowId: string): Promise<string> {
  try {
    const { name, description = "", inputSchema } = await workflows.get(tenantId, workflowId);
    const input = inputSchema === undefined ? "" : ` The schema of its input: ${JSON.stringify(inputSchema)}`;
    return `Runs the workflow "${name}". ${description}${input.slice(0, MAX_SCHEMA)}`.trim();
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return "Runs a workflow that is gone.";
    throw error;
  }
}
