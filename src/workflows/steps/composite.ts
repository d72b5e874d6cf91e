import { z } from "zod";
import { patternIds } from "../../composite/patterns.ts";
import { profileIds } from "../../composite/profiles.ts";
import { compositeBodySchema, compositeResultSchema } from "../../composite/schemas.ts";
import { defined } from "../../lib/defined.ts";
import { invalidRequest } from "../../lib/errors.ts";
import { commonFields, type StepResult, stepKind, template, textField } from "./step.ts";

const schema = z.strictObject({
  type: z.literal("composite"),
  ...commonFields,
  pattern: z.enum(patternIds),
  profile: z.enum(profileIds),
  input: template,
  models: z.array(z.string().min(1).max(200)).min(1).max(16).optional(),
});

/** Puts a question to several models, as a job of its own. */
export const composite = stepKind<z.output<typeof schema>>({
  schema,
  summary: "pattern, profile, input, models?",
  fields: ({ input }) => textField("input", input),
  attempts: 1, // its job has attempts of its own
  stub: ({ step: { pattern, profile, models } }, { input }) => ({
    output: `[the answer of ${pattern}]`,
    finishReason: "stop",
    call: { composite: pattern, profile, models, input },
  }),
  async run({ deps, run, step, place, fill, child }): Promise<StepResult> {
    const { pattern, profile, models } = step;
    const ended = await child({
      kind: "composite",
      async accept(given) {
        const body = compositeBodySchema.safeParse({ pattern, profile, models, input: String((await fill()).input) });
        if (body.success) return deps.composite.accept({ ...given, body: body.data });
        throw invalidRequest(
          `${place.field}.${body.error.issues[0]?.path.join(".")}`,
          `It ${body.error.issues[0]?.message}.`,
        );
      },
      spentOf: (job) => deps.composite.spentOf(run.tenantId, job.subject.executionId ?? ""),
    });
    if ("failure" in ended) return { output: null, ...defined(ended) };
    const { output, tokensUsed: tokens, costUsd, finishReason = "stop" } = compositeResultSchema.parse(ended.result);
    return { output, spent: { tokens, costUsd }, finishReason };
  },
});
