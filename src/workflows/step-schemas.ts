import { z } from "zod";
import { idSchema } from "../ids.ts";

export const stepTypes = ["ai_completion", "rag_query", "human_approval", "webhook", "condition"] as const;
export type StepType = (typeof stepTypes)[number];

/** Steps of a workflow, nested ones included, and how deep they nest. */
export const MAX_STEPS = 200;
const MAX_DEPTH = 8;
/** How long an approval waits, in ms. */
const MIN_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30 * 86_400_000;
export const DEFAULT_WAIT_MS = 7 * 86_400_000;

export const webhookMethods = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

const template = z.string().min(1).max(200_000);
const common = {
  id: z
    .string()
    .regex(/^[a-z0-9_]{1,64}$/, "must be 1 to 64 of a to z, 0 to 9 and _")
    .optional()
    .describe("What expressions call the step; default: step_N, N being its place in the definition"),
  retry: z
    .object({
      attempts: z.number().int().min(1).max(10).describe("Tries, the first one included"),
      backoffMs: z
        .number()
        .int()
        .min(0)
        .max(600_000)
        .describe("Wait before the second try; doubles at each further one"),
    })
    .optional(),
};

const aiCompletion = z.strictObject({
  type: z.literal("ai_completion"),
  ...common,
  model: z.string().min(1).max(200),
  prompt: template,
  systemPrompt: template.optional(),
  temperature: z.number().min(0).max(2).optional(),
  maxTokens: z.number().int().min(1).max(1_000_000).optional(),
});
const ragQuery = z.strictObject({
  type: z.literal("rag_query"),
  ...common,
  query: template,
  topK: z.number().int().min(1).max(50).optional(),
  documentIds: z.array(idSchema("document")).min(1).max(1_000).optional(),
});
const humanApproval = z.strictObject({
  type: z.literal("human_approval"),
  ...common,
  assigneeRole: z.enum(["owner", "admin"]),
  timeoutMs: z.number().int().min(MIN_WAIT_MS).max(MAX_WAIT_MS).optional(),
  message: template.optional().describe("What the approver is told"),
});
const webhook = z.strictObject({
  type: z.literal("webhook"),
  ...common,
  url: z.string().min(1).max(8_192),
  method: z
    .string()
    .transform((text) => text.toUpperCase())
    .pipe(z.enum(webhookMethods)),
  body: z.record(z.string(), z.unknown()).optional(),
});
const nested: z.ZodType<Step[]> = z.lazy(() => z.array(stepSchema));
const condition = z.strictObject({
  type: z.literal("condition"),
  ...common,
  expression: z.string().min(1).max(10_000),
  // biome-ignore lint/suspicious/noThenProperty: the interface names it so, and it is no function
  then: nested,
  else: nested.default([]),
});

export type AiCompletionStep = z.output<typeof aiCompletion>;
export type RagQueryStep = z.output<typeof ragQuery>;
export type HumanApprovalStep = z.output<typeof humanApproval>;
export type WebhookStep = z.output<typeof webhook>;
type Common = Pick<WebhookStep, "id" | "retry">;
export type ConditionStep = Common & { type: "condition"; expression: string; then: Step[]; else: Step[] };
export type Step = AiCompletionStep | RagQueryStep | HumanApprovalStep | WebhookStep | ConditionStep;

const stepSchema: z.ZodType<Step> = z.discriminatedUnion("type", [
  aiCompletion,
  ragQuery,
  humanApproval,
  webhook,
  condition,
]);

/** What the documentation shows of a step; the fields of each type are checked after its nesting is known to be bounded. */
const anyStep = z.looseObject({ type: z.enum(stepTypes) });
type AnyStep = z.output<typeof anyStep>;

export const stepsSchema = z
  .array(anyStep)
  .min(1)
  .max(MAX_STEPS)
  .superRefine((steps, context) => {
    const problem = findNestingProblem(steps);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  })
  .pipe(z.array(stepSchema) as z.ZodType<Step[], AnyStep[]>) // the same values, whose fields are looked at now
  .describe(
    "Steps in order. `ai_completion`: model, prompt, systemPrompt?, temperature?, maxTokens?. `rag_query`: query, topK?, documentIds?. " +
      "`human_approval`: assigneeRole (owner or admin), timeoutMs?, message?. `webhook`: url, method, body?. " +
      "`condition`: expression, then (steps), else? (steps). Each may have an `id` and `retry: { attempts, backoffMs }`.",
  );

/** Steps of steps, looked at without recursion: a body may nest as deep as it likes. */
function findNestingProblem(steps: readonly unknown[]): string | undefined {
  let level: unknown[] = [...steps];
  let count = 0;
  for (let depth = 1; level.length > 0; depth += 1) {
    count += level.length;
    if (depth > MAX_DEPTH) return `Steps nest deeper than ${MAX_DEPTH}.`;
    if (count > MAX_STEPS) return `There are more than ${MAX_STEPS} steps.`;
    level = level.flatMap((step) => {
      const { then, else: otherwise } = Object(step) as { then?: unknown; else?: unknown };
      return [then, otherwise].flatMap((list) => (Array.isArray(list) ? list : []));
    });
  }
  return undefined;
}
