import { defined } from "../defined.ts";
import {
  checkChatModel,
  checkDefinitionSize,
  type Definitions,
  makeDefinitions,
  shortDescription,
  toVersionView,
} from "../definitions.ts";
import { AppError, notFound } from "../errors.ts";
import { makeFreshCache } from "../fresh-cache.ts";
import type { AgentDefinition, AgentRecord, AgentSummaryRecord } from "../store/agent-store.ts";
import { withPreviews } from "./credentials.ts";
import type { AgentsDeps } from "./deps.ts";
import type { AgentBody, AgentReplacement, AgentSummary, AgentView } from "./schemas.ts";
import { kindOf } from "./tools.ts";

/** Agents of one name that an error lists. */
const SHOWN_NAMESAKES = 10;

export type AgentDefinitions = Definitions<AgentReplacement, AgentView, AgentSummary> & {
  /** The id of the one agent of this name. @throws AppError `not_found`; `invalid_request` when several have it. */
  idOf(tenantId: string, name: string): Promise<string>;
  /** An agent's definition, which may be a few seconds old; null when there is none. */
  definitionOf(tenantId: string, agentId: string): Promise<AgentDefinition | null>;
};

/** The definitions of agents. */
export function makeAgentDefinitions(
  deps: Pick<AgentsDeps, "store" | "gateway" | "egress" | "credentials" | "quotas">,
): AgentDefinitions {
  const { agents } = deps.store;
  const recent = makeFreshCache(async (key) => {
    const [tenantId = "", agentId = ""] = key.split("\n");
    return (await agents.get(tenantId, agentId))?.definition ?? null;
  });
  return {
    ...makeDefinitions({
      what: "agent",
      store: agents,
      quotas: deps.quotas,
      async toChange(tenantId, body: AgentBody, earlier) {
        await checkDefinition(deps, tenantId, body);
        const tools = await deps.credentials.seal(tenantId, body.tools, earlier?.definition.tools ?? []);
        return { definition: { ...body, tools } };
      },
      toView: toAgentView,
      toSummary: toAgentSummary,
    }),
    async idOf(tenantId, name) {
      const [only, ...others] = await agents.idsNamed(tenantId, name, SHOWN_NAMESAKES);
      if (only === undefined) throw notFound("agent");
      if (others.length === 0) return only;
      throw new AppError("invalid_request", "Several agents have this name: give the agentId of one.", {
        param: "name",
        details: { agentIds: [only, ...others] },
      });
    },
    definitionOf: async (tenantId, agentId) => recent.find(`${tenantId}\n${agentId}`),
  };
}

async function checkDefinition(
  deps: Pick<AgentsDeps, "store" | "gateway" | "egress">,
  tenantId: string,
  definition: AgentBody,
): Promise<void> {
  const { model, systemPrompt, tools } = definition;
  const isMostlyPrompt = systemPrompt.length > JSON.stringify(tools).length;
  checkDefinitionSize(definition, isMostlyPrompt ? "systemPrompt" : "tools");
  checkChatModel(deps.gateway, model, "model");
  for (const [index, tool] of tools.entries()) {
    await kindOf(tool).check?.(tool.config, { deps, tenantId, field: `tools[${index}].config` });
  }
}

function toAgentSummary(agent: AgentSummaryRecord): AgentSummary {
  const { name, description, model, tools } = agent.definition;
  return {
    agentId: agent._id,
    name,
    ...defined({ description: shortDescription(description) }),
    model,
    toolTypes: [...new Set(tools.map(({ type }) => type))],
    status: "active",
    ...toVersionView(agent),
  };
}

function toAgentView(agent: AgentRecord): AgentView {
  const { _id: agentId, definition } = agent;
  const tools = definition.tools.map((tool) => ({ ...withPreviews(tool) }));
  return { agentId, ...definition, tools, status: "active", ...toVersionView(agent) };
}
