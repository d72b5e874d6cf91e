import { z } from "zod";
import { MAX_TOOLS, text, toolName } from "../../gateway/message-schemas.ts";
import { toolSchema } from "../../gateway/schemas.ts";
import { fileSearchTool } from "./file-search.ts";

/** Longest name of a group of tools. */
const MAX_NAMESPACE = 200;
const description = z.string().max(50_000).nullish();

/** Gives what is of none of the known types the type `other`. `typed`: gives a type to what may lack it. */
export function orOther<S extends z.ZodType>(
  known: readonly string[],
  schema: S,
  typed: (value: unknown) => unknown = (value) => value,
) {
  const isOther = (value: unknown) => {
    const type = typeof value === "object" && value !== null && "type" in value ? value.type : undefined;
    return typeof type === "string" && !known.includes(type);
  };
  return z.preprocess((value) => (isOther(value) ? { type: "other" } : typed(value)), schema);
}

/** Items and tools of other types belong to tools that run at OpenAI: they are left out, and named. */
export const other = z.object({ type: z.literal("other") }).describe("Any other type: left out");

export const namespace = z.string().min(1).max(MAX_NAMESPACE).nullish().describe("The group of tools that it is of");

const functionTool = toolSchema.shape.function.extend({
  type: z.literal("function"),
  description,
  strict: z.boolean().nullish(),
});
const customTool = z.object({
  type: z.literal("custom"),
  name: toolName,
  description,
  format: z
    .discriminatedUnion("type", [
      z.object({ type: z.literal("text") }),
      z.object({ type: z.literal("grammar"), syntax: z.enum(["lark", "regex"]), definition: text }),
    ])
    .nullish(),
});
/** A tool of the caller's own, outside or inside of a group. */
const ownTool = [functionTool, customTool] as const;
const namespaceTool = z.object({
  type: z.literal("namespace"),
  name: z.string().min(1).max(MAX_NAMESPACE),
  description,
  tools: z.array(orOther(["function", "custom"], z.discriminatedUnion("type", [...ownTool, other]))).max(MAX_TOOLS),
});

/** Which tool a choice is about. */
export const chosenTool = z.object({ type: z.enum(["function", "custom"]), name: toolName, namespace });
export const chosenSearch = z.object({ type: z.literal("file_search") });
export const allowedTools = z.object({
  type: z.literal("allowed_tools"),
  mode: z.enum(["auto", "none", "required"]).default("auto"),
  tools: z
    .array(
      orOther(["function", "custom", "file_search"], z.discriminatedUnion("type", [chosenTool, chosenSearch, other])),
    )
    .min(1)
    .max(MAX_TOOLS),
});

/** A tool of a request: https://platform.openai.com/docs/api-reference/responses/create. */
const responseToolSchema = orOther(
  ["function", "custom", "namespace", "file_search"],
  z.discriminatedUnion("type", [...ownTool, namespaceTool, fileSearchTool, other]),
);
/** A list of tools. Those of its groups are counted before any of them is parsed. */
export const responseToolsSchema = z.preprocess((value, context) => {
  if (!Array.isArray(value) || value.reduce((sum: number, tool) => sum + sizeOf(tool), 0) <= MAX_TOOLS) return value;
  context.addIssue({ code: "custom", message: `has more than ${MAX_TOOLS} tools` });
  return z.NEVER;
}, z.array(responseToolSchema).max(MAX_TOOLS));
export type ResponseTool = z.output<typeof responseToolSchema>;
export type OwnTool = z.output<(typeof ownTool)[number]>;

function sizeOf(tool: unknown): number {
  const inner = typeof tool === "object" && tool !== null && "tools" in tool ? tool.tools : undefined;
  return Array.isArray(inner) ? inner.length : 1;
}
