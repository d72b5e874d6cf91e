import { z } from "zod";
import { patternIds, patterns } from "../../composite/patterns.ts";
import { profileIds, profiles } from "../../composite/profiles.ts";
import { compositeResultSchema } from "../../composite/schemas.ts";
import { AppError } from "../../lib/errors.ts";
import { jobOfCall, START_TIMEOUT_MS, throwForModel, toolKind } from "./tool.ts";

/** Puts a question through a composite pattern, as a job of its own, for whose end the run is suspended. */
export const composite = toolKind({
  schema: z.strictObject({ pattern: z.enum(patternIds), profile: z.enum(profileIds) }),
  profile: ({ profile }) => profile,
  make({ pattern, profile }, setup) {
    const { tool, about, callOf, deps } = setup;
    const { name, description } = patterns[pattern];
    return tool(
      async ({ input }, config) => {
        const call = callOf(config);
        const body = { pattern, profile, input };
        const accepting = jobOfCall(setup, call, (given) => deps.composite.accept({ ...given, body }));
        const job = await accepting.catch(throwForModel);
        call.spend(await deps.composite.spentOf(job.tenantId, job.subject.executionId ?? ""));
        if (job.status !== "completed")
          throw new AppError("provider_failed", job.error?.message ?? "It was cancelled.");
        return compositeResultSchema.parse(job.result).output;
      },
      {
        ...about(
          `Puts a question to several models (${name}, ${profiles[profile].name}): ${description}`,
          START_TIMEOUT_MS,
        ),
        schema: z.object({
          input: z.string().min(1).max(100_000).describe("The question, with all that belongs to it"),
        }),
      },
    );
  },
});
