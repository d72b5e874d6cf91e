import type { StructuredTool } from "@langchain/core/tools";
import { z } from "zod";
import { guardTexts as guardByProfile } from "../composite/guard-input.ts";
import { fromStoredCaller } from "../tenancy/roles.ts";
import { approvalPolicySchema, type PolicyOf } from "./approval-policy.ts";
import { agent } from "./tools/agent.ts";
import { calculator } from "./tools/calculator.ts";
import { composite } from "./tools/composite.ts";
import { currentTime } from "./tools/current-time.ts";
import { httpRequest } from "./tools/http-request.ts";
import { mcp } from "./tools/mcp.ts";
import { ragQuery } from "./tools/rag-query.ts";
import type { ToolKind, ToolSetup } from "./tools/tool.ts";
import { wait } from "./tools/wait.ts";
import { waitForEvent } from "./tools/wait-for-event.ts";
import { workflow } from "./tools/workflow.ts";

/** All types of tools, by their name, in the order of the documentation. */
const tools = {
  rag_query: ragQuery,
  calculator,
  current_time: currentTime,
  http_request: httpRequest,
  agent,
  workflow,
  composite,
  mcp,
  wait,
  wait_for_event: waitForEvent,
};
type ToolType = keyof typeof tools;

/** As models take names of tools, and short enough for what an MCP server's own names add. */
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,40}$/, "must be 1 to 40 letters, digits, _ or -");
const common = {
  name: toolName.optional().describe("The tool's name for the model; default: its type"),
  description: z.string().trim().min(1).max(2_000).optional().describe("What the model reads about it"),
  approval: approvalPolicySchema.optional(),
};
type Common = z.output<z.ZodObject<typeof common>>;

/** A tool of an agent: its type and its config. */
export type ToolSpec = {
  [T in ToolType]: Common & { type: T; config: z.output<(typeof tools)[T]["schema"]> };
}[ToolType];

/** Unknown fields are refused, so that nothing is silently ignored. */
export const toolSpecSchema: z.ZodType<ToolSpec> = z.discriminatedUnion(
  "type",
  Object.entries(tools).map(([type, { schema }]) =>
    z.strictObject({ type: z.literal(type), ...common, config: schema as z.ZodType }),
  ) as unknown as [z.ZodType<ToolSpec> & z.core.$ZodTypeDiscriminable], // one object a type
);

/** The value of a tool's type, which a schema has checked. Its functions take configs of this type alone. */
export const kindOf = ({ type }: ToolSpec): ToolKind<ToolSpec["config"]> => tools[type];

/** The name that a model calls a tool by. */
export const nameOfTool = ({ name, type }: ToolSpec) => name ?? type;

/** The only tool of a run that a visitor of a page asks for. */
const SEARCH: ToolType = "rag_query";
export const isSearch = ({ type }: { type: string }) => type === SEARCH;

type StoredTools = readonly { type: string; config: object }[];

/** The profiles that an agent's tools use, each once. */
export function profilesOf(tools: StoredTools) {
  const specs = tools as readonly ToolSpec[]; // as in `makeTools`
  return [...new Set(specs.flatMap((tool) => kindOf(tool).profile?.(tool.config) ?? []))];
}

/** Guards a run's texts, by field, for its tools' regulated profiles. @throws AppError `compliance_blocked`, `unavailable`. */
export function guardTexts(tools: StoredTools, texts: Readonly<Record<string, string>>) {
  for (const profile of profilesOf(tools)) guardByProfile(profile, texts);
}

/** The tools of a run, as its agent's definition sets them up, and whose calls need an approval. @throws AppError, which fails the run. */
export async function makeTools(
  env: Omit<ToolSetup, "tool" | "name" | "about" | "caller" | "context" | "guard">,
): Promise<{ tools: StructuredTool[]; policyOf: PolicyOf }> {
  const { run, signal } = env;
  const { tool } = await import("@langchain/core/tools");
  const common = {
    ...env,
    tool,
    caller: fromStoredCaller(run.tenantId, run.caller),
    context: run.context === undefined ? undefined : JSON.parse(run.context),
    guard: guardTexts,
  };
  const specs = run.definition.tools as ToolSpec[]; // the schema has read them before they were stored
  const specOf = new Map<string, ToolSpec>();
  const made = specs.map(async (spec) => {
    const name = nameOfTool(spec);
    const about: ToolSetup["about"] = (description, timeoutMs, keepsDigits = false) => {
      const extras = { timeoutMs, keepsDigits };
      return { name, description: spec.description ?? description, defaultConfig: { signal }, extras };
    };
    const own = [await kindOf(spec).make(spec.config, { ...common, name, about })].flat();
    for (const one of own) if (spec.approval || !specOf.has(one.name)) specOf.set(one.name, spec);
    return own;
  });
  // The tools of a server that cannot be reached are not known: who was asked about a call of one is still to decide.
  const serverOf = (called: string) =>
    specs.find((spec) => spec.type === "mcp" && called.startsWith(`${nameOfTool(spec)}_`));
  return {
    tools: (await Promise.all(made)).flat(),
    policyOf: (called) => (specOf.get(called) ?? serverOf(called))?.approval,
  };
}
