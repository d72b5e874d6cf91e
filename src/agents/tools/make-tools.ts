import type { AgentRunRecord } from "../../store/agent-run-store.ts";
import type { AgentsDeps } from "../deps.ts";
import type { Spending } from "../limits.ts";
import type { InnerRunContext } from "../run-to-end.ts";
import { nameOfTool } from "../schemas.ts";
import { makeCalculatorTool } from "./calculator.ts";
import { makeCallAgentTool } from "./call-agent.ts";
import { makeCallCompositeTool } from "./call-composite.ts";
import { makeCallWorkflowTool } from "./call-workflow.ts";
import { makeCurrentTimeTool } from "./current-time.ts";
import { makeHttpRequestTool } from "./http-request.ts";
import { connectMcpTools } from "./mcp-server.ts";
import { makeRagQueryTool } from "./rag-query.ts";
import type { AgentTool } from "./tool.ts";
import type { ToolSpec } from "./tool-configs.ts";

export type RunTools = { all: AgentTool[]; close(): Promise<void> };
type Env = InnerRunContext & { spending: Spending };

/** The tools of a run, as its agent's definition sets them up. */
export async function makeTools(deps: AgentsDeps, run: AgentRunRecord, env: Env): Promise<RunTools> {
  const closing: (() => Promise<void>)[] = [];
  const closeLater = (close: () => Promise<void>) => void closing.push(close);
  const close = async () => {
    await Promise.allSettled(closing.map((close) => close())); // a server that is gone needs no farewell
  };
  try {
    const made = await Promise.all(run.definition.tools.map((spec) => makeTool(deps, run, { env, spec, closeLater })));
    return { all: made.flat(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function makeTool(
  deps: AgentsDeps,
  run: AgentRunRecord,
  { env, spec, closeLater }: { env: Env; spec: ToolSpec; closeLater(close: () => Promise<void>): void },
): Promise<AgentTool[]> {
  const named = { name: nameOfTool(spec), description: spec.description };
  switch (spec.type) {
    case "rag_query":
      return [makeRagQueryTool(deps.rag, named, spec.config)];
    case "calculator":
      return [makeCalculatorTool(named)];
    case "current_time":
      return [makeCurrentTimeTool(named)];
    case "http_request":
      return [makeHttpRequestTool(deps.outside, named, spec.config)];
    case "agent": {
      const endsAt = new Date((run.startedAt ?? new Date()).getTime() + run.limits.timeoutMs);
      const execute = (recordId: string, signal: AbortSignal) =>
        env.execute({ ...env, recordId, signal, isLastAttempt: true });
      const { spending } = env;
      return [
        await makeCallAgentTool({ store: deps.store, parent: run, spending, endsAt, execute }, named, spec.config),
      ];
    }
    case "workflow":
      return [await makeCallWorkflowTool(deps, named, { tenantId: run.tenantId, ...spec.config })];
    case "composite":
      return [makeCallCompositeTool(deps, named, spec.config)];
    case "mcp": {
      const { signal, logger } = env;
      const context = run.context === undefined ? undefined : JSON.parse(run.context);
      const made = { config: spec.config, context };
      const { tools, close } = await connectMcpTools({ outside: deps.outside, logger, signal }, named, made);
      closeLater(close);
      return tools;
    }
    default:
      return spec satisfies never;
  }
}
