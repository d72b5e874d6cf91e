import { z } from "zod";
import { patternIds, patterns } from "../../composite/patterns.ts";
import { profileIds, profiles } from "../../composite/profiles.ts";
import { compositeResultSchema } from "../../composite/schemas.ts";
import { AppError } from "../../lib/errors.ts";
import { derivedId } from "../../lib/ids.ts";
import { jobOfCall, throwForModel, toolKind } from "./tool.ts";

const TIMEOUT_MS = 300_000;

/** Puts a question through a composite pattern, as a job of its own; a call that is made again waits for the same job. */
export const composite = toolKind({
  schema: z.strictObject({ pattern: z.enum(patternIds), profile: z.enum(profileIds) }),
  profile: ({ profile }) => profile,
  make({ pattern, profile }, setup) {
    const { tool, about, callOf, deps, caller, run } = setup;
    const { name, description } = patterns[pattern];
    return tool(
      async ({ input }, config) => {
        const { idempotencyKey, signal, spend } = callOf(config);
        const jobId = derivedId("job", { at: run.createdAt, from: idempotencyKey });
        const request = { caller, body: { pattern, profile, input }, isInteractive: true, jobId };
        const { tenantId } = caller;
        await jobOfCall(setup, jobId, () => deps.composite.accept(request)).catch(throwForModel);
        const job = await deps.jobs.wait(tenantId, jobId, { signal, isOwner: true });
        if (job.status !== "completed")
          throw new AppError("provider_failed", job.error?.message ?? "It was cancelled.");
        const { output, tokensUsed: tokens, outputTokens, costUsd } = compositeResultSchema.parse(job.result);
        spend({ tokens, outputTokens, costUsd });
        return output;
      },
      {
        ...about(`Puts a question to several models (${name}, ${profiles[profile].name}): ${description}`, TIMEOUT_MS),
        schema: z.object({
          input: z.string().min(1).max(100_000).describe("The question, with all that belongs to it"),
        }),
      },
    );
  },
});
