import { z } from "zod";
import { replacementOf, versionFields } from "../definitions/definitions.ts";
import { publishSchema } from "../definitions/published-tools.ts";
import { outputTokensSchema } from "../definitions/runs.ts";
import { citationSchema } from "../gateway/citation.ts";
import { guardCountsSchema } from "../guards/rules.ts";
import { errorViewSchema } from "../jobs/job-view.ts";
import { withFewFields } from "../lib/bounded-json.ts";
import { idSchema } from "../lib/ids.ts";
import { limiting } from "../lib/limiting.ts";
import { stopReasons } from "../store/agent-run-store.ts";
import { runStates } from "./run-state.ts";
import { nameOfTool, type ToolSpec, toolSpecSchema } from "./tools.ts";

const MAX_TOOLS = 32;
export const DEFAULT_ITERATIONS = 10;
const MAX_ITERATIONS = 2_000;

const toolsSchema = z.array(toolSpecSchema).max(MAX_TOOLS).superRefine(checkNames);

/** The body of `POST /agents` and `PUT /agents/:id`. */
export const agentBodySchema = z.object({
  name: z.string().trim().min(1).max(200),
  description: z.string().trim().max(2_000).optional(),
  model: z.string().min(1).max(200).describe("A model of `/ai/models`, `meta-llm` or `auto`"),
  systemPrompt: z.string().min(1).max(100_000),
  tools: toolsSchema.default([]).describe("Default: none"),
  allowSelfApproval: z
    .boolean()
    .optional()
    .describe(
      "Whether the key that starts a run may decide on its calls. Default: only an owner's, in a tenant with one key",
    ),
  maxIterations: z.number().int().min(1).max(MAX_ITERATIONS).default(DEFAULT_ITERATIONS),
  temperature: z.number().min(0).max(2).optional().describe("Default: the model's own"),
  maxTokens: limiting(
    z.number().int().min(1).max(1_000_000).optional().describe("Cap on the tokens of one answer of the model"),
  ),
  publish: publishSchema.optional(),
});
export type AgentBody = z.output<typeof agentBodySchema>;

/** PUT may name the version that it replaces; it is refused when another one is there. */
export const agentReplacementSchema = replacementOf("agent", agentBodySchema);
export type AgentReplacement = z.output<typeof agentReplacementSchema>;

/** An agent, as it is read back. */
export const agentViewSchema = agentBodySchema.extend({
  agentId: idSchema("agent"),
  tools: z.array(z.looseObject({ type: z.string(), config: z.record(z.string(), z.unknown()) })),
  maxIterations: z.number().int(),
  status: z.literal("active"),
  ...versionFields,
});
export type AgentView = z.input<typeof agentViewSchema>;

/** An agent in a list. */
export const agentSummarySchema = agentViewSchema
  .omit({
    systemPrompt: true,
    tools: true,
    allowSelfApproval: true,
    maxIterations: true,
    temperature: true,
    maxTokens: true,
    publish: true,
  })
  .extend({
    description: z.string().optional().describe("Cut after 300 characters"),
    toolTypes: z.array(z.string()).describe("Each type of its tools once"),
  });
export type AgentSummary = z.output<typeof agentSummarySchema>;

function checkNames(tools: readonly ToolSpec[], context: z.RefinementCtx): void {
  const seen = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    const name = nameOfTool(tool);
    if (seen.has(name)) {
      const message = `There is a tool of the name ${name} already: give each a name of its own.`;
      context.addIssue({ code: "custom", path: [index, "name"], message });
    }
    seen.add(name);
  }
}

/** Longest time at work of a run, in ms: 30 days; and the default. */
const MAX_RUN_MS = 30 * 86_400_000;
export const DEFAULT_RUN_MS = 600_000;
const MAX_CONTEXT = 32_000;
/** The shortest field is `"":0,`, so no more fields than this fit into the length. */
const MAX_CONTEXT_FIELDS = MAX_CONTEXT / 5;

const sessionSchema = z
  .string()
  .max(256)
  .overwrite((text) => text.toWellFormed())
  .describe("Groups the runs of one conversation: earlier turns are given to the model");

/** Most turns of a history, and their characters together. */
const MAX_HISTORY_TURNS = 200;
const MAX_HISTORY_CHARACTERS = 200_000;

const historySchema = z
  .array(z.object({ role: z.enum(["system", "user", "assistant"]), content: z.string().min(1) }))
  .max(MAX_HISTORY_TURNS)
  .refine(
    (turns) => turns.reduce((sum, { content }) => sum + content.length, 0) <= MAX_HISTORY_CHARACTERS,
    `is longer than ${MAX_HISTORY_CHARACTERS} characters`,
  )
  .describe(
    "What was said before, where the caller keeps it; the turns of `sessionId` are not given to the model then",
  );

/** The body of `POST /agents/:id/run`. */
export const runBodySchema = z.object({
  input: z.string().max(200_000).regex(/\S/, "must hold more than blanks"),
  history: historySchema.optional(),
  sessionId: sessionSchema.optional(),
  context: withFewFields(MAX_CONTEXT_FIELDS, z.record(z.string(), z.unknown()))
    .refine((value) => JSON.stringify(value).length <= MAX_CONTEXT, `is longer than ${MAX_CONTEXT} characters as JSON`)
    .optional()
    .describe("Given to the tools, and to the model as data"),
  budget: limiting(
    z
      .strictObject({
        maxTokens: z.number().int().min(1).max(100_000_000).optional(),
        maxCostUsd: z.number().positive().max(100_000).optional(),
        timeoutMs: z
          .number()
          .int()
          .min(100)
          .max(MAX_RUN_MS)
          .optional()
          .describe("Time at work; what a run waits does not count. Default: 10 minutes"),
      })
      .optional()
      .describe(
        "What the run may use at most, with all that its tools start; one that reaches it is stopped, with the best answer so far",
      ),
    { unlike: ["maxTokens", "maxCostUsd", "costUsd", "timeoutMs", "timeout"] },
  ),
});
export type RunInput = z.output<typeof runBodySchema>;

const usage = { tokensUsed: z.number().int().min(0), costUsd: z.number().min(0) };

const runCitationsSchema = z
  .array(citationSchema)
  .optional()
  .describe(
    "What the output rests on, of what `rag_query` or an agent that was called has found; only if there was a search",
  );

/** What a run gives that has completed, or was stopped by a limit. */
export const runResultSchema = z.object({
  output: z.string(),
  steps: z.number().int().min(0).describe("Iterations: answers of the model"),
  runId: idSchema("run"),
  ...usage,
  outputTokens: outputTokensSchema,
  status: z.enum(["completed", "stopped"]),
  stopReason: z.enum(stopReasons).optional(),
  agentId: idSchema("agent"),
  agentVersion: z.number().int(),
  sessionId: z.string().optional(),
  citations: runCitationsSchema,
  auditHead: z
    .string()
    .describe(
      "Hash of the last entry of the audit log. A client that keeps it can check later whether the log is the same",
    ),
});
export type RunResult = z.output<typeof runResultSchema>;

const foundSchema = z
  .array(citationSchema.extend({ quote: citationSchema.shape.quote.optional() }))
  .optional()
  .describe(
    "Passages that `rag_query` has found, each with the sentence that is nearest to what was looked for; of an agent that was called, what its answer rests on",
  );

const actionSchema = z.object({
  id: z.string(),
  action: z.string(),
  actionInput: z.record(z.string(), z.unknown()),
  observation: z.string(),
  isError: z.boolean().optional(),
  runId: z.string().optional().describe("The run of the agent that was called"),
  jobId: z.string().optional().describe("The job that the call has started"),
  citations: foundSchema,
  idempotencyKey: z.string(),
  approval: z
    .object({
      approvalId: idSchema("approval"),
      status: z.enum(["pending", "approved", "rejected", "expired"]),
      decidedBy: z.string().optional(),
      comment: z.string().optional(),
    })
    .optional()
    .describe("Of a call that needs one"),
  startedAt: z.iso.datetime().optional(),
  finishedAt: z.iso.datetime().optional(),
});

const stepSchema = z.object({
  index: z.number().int().min(1),
  thought: z.string(),
  action: z.string().describe("The tool, or several of one answer with commas; `final_answer` of the last step"),
  actionInput: z.record(z.string(), z.unknown()).describe("Of several calls: the input of each by its id"),
  observation: z.string(),
  actions: z.array(actionSchema).optional().describe("Each call, where the answer asked for several"),
  idempotencyKey: z.string().optional(),
  approval: actionSchema.shape.approval,
  isError: z.boolean().optional(),
  runId: z.string().optional(),
  jobId: z.string().optional(),
  citations: foundSchema,
  model: z.string(),
  logId: z.string(),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime().optional(),
  tokens: z.number().int(),
  outputTokens: outputTokensSchema,
  costUsd: z.number(),
});
export type StepView = z.output<typeof stepSchema>;

const runHead = {
  runId: idSchema("run"),
  agentId: idSchema("agent"),
  agentVersion: z.number().int(),
  jobId: idSchema("job"),
  parentRunId: idSchema("run").optional(),
  sessionId: z.string().optional(),
  status: z.enum(runStates),
  awaiting: z
    .array(
      z.object({
        kind: z.enum(["approval", "time", "event", "job"]),
        runId: idSchema("run").describe("The run itself, or one that it has called"),
        approvalId: idSchema("approval").optional(),
        jobId: idSchema("job").optional().describe("The job that a tool call has started"),
        toolName: z.string().optional(),
        event: z.string().optional(),
        until: z.iso.datetime().optional().describe("When the wait is over at the latest, where that is known"),
      }),
    )
    .optional()
    .describe("What a run waits for; no worker and nothing in Redis is held for it meanwhile"),
  stopReason: z.enum(stopReasons).optional(),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional(),
  finishedAt: z.iso.datetime().optional(),
  ...usage,
};

/** A run in a list. */
export const runSummarySchema = z.object({ ...runHead, steps: z.number().int() });
export type RunSummary = z.output<typeof runSummarySchema>;

/** A run with its audit log. */
export const runViewSchema = z.object({
  ...runHead,
  agentName: z.string(),
  input: z.string(),
  history: historySchema.optional(),
  context: z.record(z.string(), z.unknown()).optional(),
  steps: z.array(stepSchema),
  notices: z.array(z.string()).optional().describe("What the run had to do without, as tools that cannot be used"),
  finalOutput: z.string(),
  citations: runCitationsSchema,
  error: errorViewSchema.optional(),
  guard: guardCountsSchema.optional(),
  integrity: z.object({
    head: z.string(),
    verified: z.boolean(),
    entries: z.number().int(),
    breach: z.object({ seq: z.number().int(), problem: z.string() }).optional(),
  }),
});
export type RunView = z.output<typeof runViewSchema>;
