import { z } from "zod";
import { idSchema } from "../ids.ts";
import { type ToolSpec, toolSpecSchema } from "./tools/tool-configs.ts";

const MAX_TOOLS = 32;
export const DEFAULT_ITERATIONS = 10;
const MAX_ITERATIONS = 50;

const toolsSchema = z.array(toolSpecSchema).max(MAX_TOOLS).superRefine(checkNames);

/** The body of `POST /agents` and `PUT /agents/:id`. */
export const agentBodySchema = z.object({
  name: z.string().trim().min(1).max(200),
  description: z.string().trim().max(2_000).optional(),
  model: z.string().min(1).max(200).describe("A model of `/ai/models`, `meta-llm` or `auto`"),
  systemPrompt: z.string().min(1).max(100_000),
  tools: toolsSchema.default([]),
  maxIterations: z.number().int().min(1).max(MAX_ITERATIONS).default(DEFAULT_ITERATIONS),
  temperature: z.number().min(0).max(2).optional().describe("Default: the model's own"),
  maxTokens: z.number().int().min(1).max(1_000_000).optional().describe("Cap on the tokens of one answer of the model"),
});
export type AgentBody = z.output<typeof agentBodySchema>;

/** PUT may name the version that it replaces; it is refused when another one is there. */
export const agentReplacementSchema = agentBodySchema.extend({
  version: z.number().int().min(1).optional().describe("Refused with 409 when the agent is at another version"),
});
export type AgentReplacement = z.output<typeof agentReplacementSchema>;

/** An agent, as it is read back. */
export const agentViewSchema = z.object({
  agentId: idSchema("agent"),
  name: z.string(),
  description: z.string().optional(),
  model: z.string(),
  systemPrompt: z.string(),
  tools: z.array(z.looseObject({ type: z.string(), config: z.record(z.string(), z.unknown()) })),
  maxIterations: z.number().int(),
  temperature: z.number().optional(),
  maxTokens: z.number().int().optional(),
  status: z.literal("active"),
  version: z.number().int(),
  createdBy: z.string(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type AgentView = z.input<typeof agentViewSchema>;

/** The name that a model calls a tool by. */
export const nameOfTool = ({ name, type }: ToolSpec) => name ?? type;

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
