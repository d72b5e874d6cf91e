import { z } from "zod";
import { guardTexts as guardByProfile } from "../composite/guard-input.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { AgentsDeps } from "./deps.ts";
import type { RunUsage } from "./run-usage.ts";
import { agent } from "./tools/agent.ts";
import { calculator } from "./tools/calculator.ts";
import { composite } from "./tools/composite.ts";
import { currentTime } from "./tools/current-time.ts";
import { httpRequest } from "./tools/http-request.ts";
import { mcp } from "./tools/mcp.ts";
import { ragQuery } from "./tools/rag-query.ts";
import type { AgentTool, InnerResult, ToolKind } from "./tools/tool.ts";
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
};
type ToolType = keyof typeof tools;

/** As models take names of tools, and short enough for what an MCP server's own names add. */
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,40}$/, "must be 1 to 40 letters, digits, _ or -");
const common = {
  name: toolName.optional().describe("The tool's name for the model; default: its type"),
  description: z.string().trim().min(1).max(2_000).optional().describe("What the model reads about it"),
};
type Common = z.output<z.ZodObject<typeof common>>;

/** A tool of an agent: its type and its config. */
export type ToolSpec = {
  [T in ToolType]: Common & { type: T; config: z.output<(typeof tools)[T]["schema"]> };
}[ToolType];

/** What is not known is refused, so that nothing is silently off. */
export const toolSpecSchema: z.ZodType<ToolSpec> = z.discriminatedUnion(
  "type",
  Object.entries(tools).map(([type, { schema }]) =>
    z.object({ type: z.literal(type), ...common, config: schema as z.ZodType }),
  ) as unknown as [z.ZodType<ToolSpec> & z.core.$ZodTypeDiscriminable], // one object a type
);

/** The value of a tool's type, which a schema has checked. Its functions take configs of this type alone. */
export const kindOf = ({ type }: ToolSpec): ToolKind<ToolSpec["config"]> => tools[type];

/** The name that a model calls a tool by. */
export const nameOfTool = ({ name, type }: ToolSpec) => name ?? type;

/**
 * Guards the texts of a run, by the names of their fields, for the regulated profiles of an agent's tools.
 * @throws AppError `compliance_blocked`, `unavailable`.
 */
export function guardTexts(
  tools: readonly { type: string; config: object }[],
  texts: Readonly<Record<string, string>>,
) {
  const specs = tools as readonly ToolSpec[]; // as in `makeTools`
  for (const profile of new Set(specs.flatMap((tool) => kindOf(tool).profile?.(tool.config) ?? []))) {
    guardByProfile(profile, texts);
  }
}

export type RunTools = { all: AgentTool[]; close(): Promise<void> };
/** The context of a run; `execute` runs an agent that is called as a tool. */
export type InnerRunContext = WorkContext & { execute(context: WorkContext): Promise<InnerResult> };

/** The tools of a run, as its agent's definition sets them up. */
export async function makeTools(
  deps: AgentsDeps,
  run: AgentRunRecord,
  env: InnerRunContext & { usage: RunUsage },
): Promise<RunTools> {
  const closing: (() => Promise<void>)[] = [];
  const close = async () => {
    await Promise.allSettled(closing.map((one) => one())); // a server that is gone needs no farewell
  };
  const common = {
    deps,
    run,
    context: run.context === undefined ? undefined : JSON.parse(run.context),
    usage: env.usage,
    endsAt: new Date((run.startedAt ?? new Date()).getTime() + run.limits.timeoutMs),
    signal: env.signal,
    logger: env.logger,
    execute: (recordId: string, signal: AbortSignal) => env.execute({ ...env, recordId, signal, isLastAttempt: true }),
    guard: guardTexts,
    closeLater: (one: () => Promise<void>) => void closing.push(one),
  };
  const specs = run.definition.tools as ToolSpec[]; // the schema has read them before they were stored
  try {
    const made = await Promise.all(
      specs.map((spec) =>
        kindOf(spec).make(spec.config, { ...common, name: nameOfTool(spec), description: spec.description }),
      ),
    );
    return { all: made.flat(), close };
  } catch (error) {
    await close();
    throw error;
  }
}
