import { z } from "zod";
import type { ChatOutcome } from "../../gateway/chat/outcome.ts";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { commonFields, originOf, type StepResult, stepKind, template, textField } from "./step.ts";

/** Asks a model. An answer that is not whole fails the step, unless it says that it takes that. */
export const aiCompletion = stepKind({
  schema: z.strictObject({
    type: z.literal("ai_completion"),
    ...commonFields,
    model: z.string().min(1).max(200),
    prompt: template,
    systemPrompt: template.optional(),
    temperature: z.number().min(0).max(2).optional(),
    maxTokens: z.number().int().min(1).max(1_000_000).optional(),
    allowIncomplete: z
      .boolean()
      .optional()
      .describe("Go on with an answer that was cut, filtered, or broken off by its provider; default: the step fails"),
  }),
  summary: "model, prompt, systemPrompt?, temperature?, maxTokens?, allowIncomplete?",
  fields: ({ prompt, systemPrompt }) => [...textField("prompt", prompt), ...textField("systemPrompt", systemPrompt)],
  model: ({ model }) => model,
  stub: ({ step: { model, temperature, maxTokens } }, { prompt, systemPrompt }) => ({
    output: `[the answer of ${model}]`,
    finishReason: "stop",
    call: { model, prompt, systemPrompt, temperature, maxTokens },
  }),
  async run({ deps, run, step, fill, limit, signal }): Promise<StepResult> {
    const { model, temperature, maxTokens, allowIncomplete = false } = step;
    const { prompt, systemPrompt } = await fill();
    const caller = {
      tenantId: run.tenantId,
      keyId: run.caller.keyId,
      surface: "workflows",
      signal,
      limit,
      origin: originOf(run),
    };
    try {
      const outcome = await deps.gateway.complete(caller, {
        model,
        messages: [{ role: "user", content: String(prompt) }],
        ...defined({
          systemPrompt: systemPrompt === undefined ? undefined : String(systemPrompt),
          temperature,
          maxTokens,
        }),
      });
      const { finishReason } = outcome;
      const result = { output: outcome.text.toWellFormed(), finishReason };
      const isCut = finishReason === "length" || finishReason === "content_filter";
      return isCut && !allowIncomplete ? { ...result, failure: toFailure(outcome) } : result;
    } catch (error) {
      const output = allowIncomplete ? textOf(error) : undefined;
      if (output === undefined) throw error;
      return { output, finishReason: "error" };
    }
  },
});

/** The error of an answer that is not whole. Another attempt would most likely end the same. */
function toFailure({ finishReason, providerFinishReason, text }: ChatOutcome): AppError {
  const why = finishReason === "content_filter" ? "was filtered by the model's provider" : "was cut";
  const message = `The model's answer ${why} (${providerFinishReason ?? finishReason}). A step with allowIncomplete: true goes on with it.`;
  const details = { finishReason, providerFinishReason, text: text.slice(0, MAX_SHOWN).toWellFormed() };
  return new AppError("answer_incomplete", message, { details: defined(details) });
}

/** Longest text of an answer that its error shows, in characters. */
const MAX_SHOWN = 20_000;

/** What had been said of an answer that its provider could not finish. */
function textOf(error: unknown): string | undefined {
  const { text } = error instanceof AppError ? Object(error.details) : {};
  return typeof text === "string" && text !== "" ? text : undefined;
}
