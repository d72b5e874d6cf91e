import { z } from "zod";
import { AppError } from "../../errors.ts";
import { derivedId } from "../../ids.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import type { Workflows } from "../../workflows/workflows.ts";
import { type AgentTool, defineTool } from "./tool.ts";
import type { WorkflowToolConfig } from "./tool-configs.ts";
import { waitForJob } from "./wait-for-job.ts";

const TIMEOUT_MS = 300_000;
/** How often it is looked whether the run waits for a person, in ms. */
const LOOK_EVERY_MS = 1_000;
/** Most of an input's schema that the model is told, in characters. */
const MAX_SCHEMA = 4_000;

export type CallWorkflowDeps = {
  jobs: Pick<Jobs, "find" | "wait" | "cancel">;
  workflows: Pick<Workflows, "start" | "runOf" | "get">;
};

/**
 * Starts a run of a workflow, as a job of its own, and waits for its end. A run that waits for a person may do so for days: then
 * the model is told so, and the run goes on by itself. A call that is made again waits for the same run.
 */
export async function makeCallWorkflowTool(
  { jobs, workflows }: CallWorkflowDeps,
  named: Pick<AgentTool, "name"> & { description?: string | undefined },
  { tenantId, workflowId }: WorkflowToolConfig & { tenantId: string },
): Promise<AgentTool> {
  return defineTool({
    name: named.name,
    description: named.description ?? (await describe(workflows, tenantId, workflowId)),
    input: z.object({ input: z.unknown().describe("What the run is given, as JSON") }),
    timeoutMs: TIMEOUT_MS,
    async run({ input }, { caller, idempotencyKey, acceptedAt, signal, spend }) {
      const jobId = derivedId("job", { at: acceptedAt, from: idempotencyKey });
      const job =
        (await jobs.find(tenantId, jobId)) ?? (await workflows.start(caller, workflowId, { input }, true, jobId)).job;
      const runId = job.subject.runId ?? "";
      const find = () => workflows.runOf(tenantId, workflowId, runId);
      const isEnough = async () => (await find()).status === "awaiting_approval";
      const { status, error } = await waitForJob(jobs, { tenantId, jobId, signal, everyMs: LOOK_EVERY_MS, isEnough });
      const { tokensUsed: tokens, costUsd, ...run } = await find();
      spend({ tokens, costUsd });
      if (status === "failed" || status === "cancelled") {
        throw new AppError("provider_failed", error?.message ?? "The run was cancelled.");
      }
      return JSON.stringify({ runId, status: run.status, output: run.output, awaiting: run.awaiting });
    },
  });
}

async function describe(
  workflows: CallWorkflowDeps["workflows"],
  tenantId: string,
  workflowId: string,
): Promise<string> {
  try {
    const { name, description = "", inputSchema } = await workflows.get(tenantId, workflowId);
    const schema = inputSchema === undefined ? "" : ` The schema of its input: ${JSON.stringify(inputSchema)}`;
    return `Runs the workflow "${name}". ${description}${schema.slice(0, MAX_SCHEMA)}`.trim();
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return "Runs a workflow that is gone.";
    throw error;
  }
}
