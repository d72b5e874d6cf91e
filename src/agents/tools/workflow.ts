import { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { derivedId, idSchema } from "../../lib/ids.ts";
import type { Workflows } from "../../workflows/workflows.ts";
import { jobOfCall, missingTarget, toolKind } from "./tool.ts";

/** Most of an input's schema that the description holds, in characters. */
const MAX_SCHEMA = 4_000;

/**
 * Starts a run of a workflow, as a job of its own, and waits for its end. A run that awaits a person may do so for days: then
 * the model reads that it does, and the run continues by itself. A call that is made again waits for the same run.
 */
export const workflow = toolKind({
  schema: z.strictObject({ workflowId: idSchema("workflow") }),
  async check({ workflowId }, { deps, tenantId, field }) {
    if (!(await deps.store.workflows.get(tenantId, workflowId))) throw missingTarget("workflow", `${field}.workflowId`);
  },
  async make({ workflowId }, setup) {
    const { tool, about, callOf, caller, run, endsAt } = setup;
    // The run's own clock ends the call: a workflow may take as long as the run that waits for it.
    const leftMs = Math.max(1, endsAt.getTime() - Date.now()) + 5_000;
    const { jobs, workflows } = setup.deps;
    const { tenantId } = run;
    return tool(
      async ({ input }, config) => {
        const { idempotencyKey, signal, spend } = callOf(config);
        const jobId = derivedId("job", { at: run.createdAt, from: idempotencyKey });
        const request = { caller, workflowId, body: { input }, isInteractive: true, jobId };
        const job = await jobOfCall(setup, jobId, () => workflows.accept(request));
        const runId = job.subject.runId ?? "";
        const find = () => workflows.runOf(caller, workflowId, runId);
        const isEnough = async () => (await find()).status === "awaiting_approval";
        const { status, error } = await jobs.wait(tenantId, jobId, { signal, isEnough, isOwner: true });
        const { tokensUsed: tokens, costUsd, status: state, output, awaiting } = await find();
        spend({ tokens, costUsd });
        if (status === "failed" || status === "cancelled") {
          throw new AppError("provider_failed", error?.message ?? "The run was cancelled.");
        }
        return JSON.stringify({ runId, status: state, output, awaiting });
      },
      {
        ...about(await describe(workflows, tenantId, workflowId), leftMs, true),
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
