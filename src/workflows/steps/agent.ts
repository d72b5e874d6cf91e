import { z } from "zod";
import { defined } from "../../lib/defined.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { idSchema } from "../../lib/ids.ts";
import { commonFields, type StepResult, stepKind, template, textField } from "./step.ts";

/** Longest input of an agent, in characters; that of `POST /agents/:id/run`. */
const MAX_INPUT = 200_000;
const MAX_RUN_MS = 600_000;

const schema = z
  .strictObject({
    type: z.literal("agent"),
    ...commonFields,
    agentId: idSchema("agent").optional(),
    name: z.string().min(1).max(200).optional().describe("The agent's name, in the place of its id"),
    input: template,
    context: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Given to the agent's tools and, as data, to its model"),
    budget: z
      .strictObject({
        maxTokens: z.number().int().min(1).max(100_000_000).optional(),
        maxCostUsd: z.number().positive().max(100_000).optional(),
        timeoutMs: z.number().int().min(100).max(MAX_RUN_MS).optional(),
      })
      .optional(),
  })
  .refine(({ agentId, name }) => (agentId === undefined) !== (name === undefined), {
    message: "has one of agentId and name",
  });

const resultSchema = z.object({
  output: z.string(),
  status: z.string(),
  stopReason: z.string().optional(),
  tokensUsed: z.number(),
  costUsd: z.number(),
});

/** Longest part of an unfinished answer that an error shows, in characters. */
const MAX_SHOWN = 20_000;

const toFailure = (text: string) =>
  new AppError("budget_exhausted", "The budget ended before the agent's answer.", {
    details: { text: text.slice(0, MAX_SHOWN).toWellFormed() },
  });

/** Runs an agent, as a job of its own. */
export const agent = stepKind<z.output<typeof schema>>({
  schema,
  summary: "agentId or name, input, context?, budget?",
  fields: ({ input, context }) => [
    ...textField("input", input),
    ...(context === undefined ? [] : [{ at: "context", value: context, kind: "value" as const }]),
  ],
  async check({ agentId, name }, { deps, tenantId, field }) {
    if (await deps.agents.find(tenantId, { agentId, name })) return;
    throw invalidRequest(`${field}.${name === undefined ? "agentId" : "name"}`, "There is no such agent.");
  },
  attempts: 1, // its job has attempts of its own
  stub: ({ step: { agentId, name } }, { input, context }) => ({
    output: `[the answer of agent ${name ?? agentId}]`,
    finishReason: "stop",
    call: { agent: name ?? agentId, input, context },
  }),
  async run({ deps, run, step, place, fill, child }): Promise<StepResult> {
    const { tenantId } = run;
    const ended = await child({
      kind: "agent",
      async accept(given) {
        const agentId = await deps.agents.find(tenantId, step);
        if (agentId === undefined) throw invalidRequest(place.field, "The agent is gone.");
        const filled = await fill();
        const input = String(filled.input);
        if (input.trim() === "") throw invalidRequest(`${place.field}.input`, "The input is empty.");
        if (input.length > MAX_INPUT)
          throw invalidRequest(`${place.field}.input`, `The input is longer than ${MAX_INPUT} characters.`);
        const context = filled.context as Record<string, unknown> | undefined; // a field of objects keeps its form
        return deps.agents.accept({ ...given, agentId, body: defined({ input, context, budget: step.budget }) });
      },
      spentOf: (job) => deps.agents.spentOf(tenantId, job.subject.runId ?? ""),
    });
    if ("failure" in ended) return { output: null, ...defined(ended) };
    const { output, status, stopReason, tokensUsed: tokens, costUsd } = resultSchema.parse(ended.result);
    const finishReason = status === "stopped" ? (stopReason ?? status) : "stop";
    const result = { output, spent: { tokens, costUsd }, finishReason };
    // Its own budget has ended the run as the step says; that of the tenant would end whatever follows, too.
    return stopReason === "budget_exhausted" ? { ...result, failure: toFailure(output) } : result;
  },
});
