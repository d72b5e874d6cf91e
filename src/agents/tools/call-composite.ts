import { z } from "zod";
import type { Composite } from "../../composite/composite.ts";
import { patterns } from "../../composite/patterns.ts";
import { profiles } from "../../composite/profiles.ts";
import { compositeResultSchema } from "../../composite/schemas.ts";
import { AppError } from "../../errors.ts";
import { derivedId } from "../../ids.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import { type AgentTool, defineTool } from "./tool.ts";
import type { CompositeToolConfig } from "./tool-configs.ts";
import { waitForJob } from "./wait-for-job.ts";

const TIMEOUT_MS = 300_000;

export type CallCompositeDeps = {
  jobs: Pick<Jobs, "find" | "wait" | "cancel">;
  composite: Pick<Composite, "accept">;
};

/** Puts a question through a composite pattern, as a job of its own; a call that is made again waits for the same job. */
export function makeCallCompositeTool(
  { jobs, composite }: CallCompositeDeps,
  named: Pick<AgentTool, "name"> & { description?: string | undefined },
  { pattern, profile }: CompositeToolConfig,
): AgentTool {
  const about = `Puts a question to several models (${patterns[pattern].name}, ${profiles[profile].name}): ${patterns[pattern].description}`;
  return defineTool({
    name: named.name,
    description: named.description ?? about,
    input: z.object({ input: z.string().min(1).max(100_000).describe("The question, with all that belongs to it") }),
    timeoutMs: TIMEOUT_MS,
    async run({ input }, { caller, idempotencyKey, acceptedAt, signal, spend }) {
      const jobId = derivedId("job", { at: acceptedAt, from: idempotencyKey });
      const known = await jobs.find(caller.tenantId, jobId);
      if (!known) await composite.accept(caller, { pattern, profile, input }, true, jobId);
      const job = await waitForJob(jobs, { tenantId: caller.tenantId, jobId, signal });
      if (job.status !== "completed") throw new AppError("provider_failed", job.error?.message ?? "It was cancelled.");
      const { output, tokensUsed: tokens, costUsd } = compositeResultSchema.parse(job.result);
      spend({ tokens, costUsd });
      return output;
    },
  });
}
