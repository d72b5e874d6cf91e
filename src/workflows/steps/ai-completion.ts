import { z } from "zod";
import { defined } from "../../defined.ts";
import { spentOf } from "../../runs.ts";
import { commonFields, stepKind, template, textField } from "./step.ts";

/** Asks a model. */
export const aiCompletion = stepKind({
  schema: z.strictObject({
    type: z.literal("ai_completion"),
    ...commonFields,
    model: z.string().min(1).max(200),
    prompt: template,
    systemPrompt: template.optional(),
    temperature: z.number().min(0).max(2).optional(),
    maxTokens: z.number().int().min(1).max(1_000_000).optional(),
  }),
  summary: "model, prompt, systemPrompt?, temperature?, maxTokens?",
  fields: ({ prompt, systemPrompt }) => [...textField("prompt", prompt), ...textField("systemPrompt", systemPrompt)],
  model: ({ model }) => model,
  async run({ deps, run, step, fill, signal }) {
    const { model, temperature, maxTokens } = step;
    const { prompt, systemPrompt } = await fill();
    const caller = { tenantId: run.tenantId, keyId: run.caller.keyId, surface: "workflows", signal };
    const outcome = await deps.gateway.complete(caller, {
      model,
      messages: [{ role: "user", content: String(prompt) }],
      ...defined({
        systemPrompt: systemPrompt === undefined ? undefined : String(systemPrompt),
        temperature,
        maxTokens,
      }),
    });
    return { output: outcome.text.toWellFormed(), spent: spentOf(outcome) };
  },
});
