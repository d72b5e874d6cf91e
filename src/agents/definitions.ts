import {
  checkChatModel,
  checkDefinitionSize,
  type Definitions,
  makeDefinitions,
  shortDescription,
  toVersionView,
} from "../definitions/definitions.ts";
import { defined } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { AgentRecord, AgentSummaryRecord } from "../store/agent-store.ts";
import { withPreviews } from "./credentials.ts";
import type { AgentsDeps } from "./deps.ts";
import type { AgentBody, AgentReplacement, AgentSummary, AgentView } from "./schemas.ts";
import { kindOf } from "./tools.ts";

/** Agents of one name that an error lists. */
const SHOWN_NAMESAKES = 10;

/** The definitions of agents. */
export function makeAgentDefinitions(deps: AgentsDeps) {
  const { agents } = deps.store;
  const recent = makeStaleWhileRevalidate(async (key) => {
    const [tenantId = "", agentId = ""] = key.split("\n");
    return (await agents.get(tenantId, agentId))?.definition ?? null;
  });
  const definitions: Definitions<AgentReplacement, AgentView, AgentSummary> = makeDefinitions({
    what: "agent",
    store: agents,
    versions: deps.store.definitionVersions,
    toolNames: deps.toolNames,
    checkQuota: (tenantId) => deps.quotas.check(tenantId, "agents"),
    publishedAs: ({ definition }) => definition.publish?.name,
    async toChange({ tenantId }, body: AgentBody, earlier) {
      await checkDefinition(deps, tenantId, body);
      const tools = await deps.credentials.seal(tenantId, body.tools, earlier?.definition.tools ?? []);
      return { definition: { ...body, tools } };
    },
    // Headers come back as previews, which stand for the old version's own values.
    toRestored: ({ definition: old }, { definition }) => ({
      body: { ...old, tools: old.tools.map(withPreviews) } as AgentBody, // it was one when it was written
      earlier: { definition: { ...definition, tools: old.tools } },
    }),
    toView: toAgentView,
    toSummary: toAgentSummary,
  });
  return {
    ...definitions,
    /** The id of the one agent of this name. @throws AppError `not_found`; `invalid_request` when several have it. */
    async idOf(tenantId: string, name: string): Promise<string> {
      const [only, ...others] = await agents.idsNamed(tenantId, name, SHOWN_NAMESAKES);
      if (only === undefined) throw notFound("agent");
      if (others.length === 0) return only;
      throw new AppError("invalid_request", "Several agents have this name: give the agentId of one.", {
        param: "name",
        details: { agentIds: [only, ...others] },
      });
    },
    /** A page of what is a tool of `/mcp`; and the one of a name. */
    listPublished: agents.listPublished,
    findPublished: agents.findPublished,
    /** An agent's definition, which may be a few seconds old; null when there is none. */
    definitionOf: async (tenantId: string, agentId: string) => recent.find(`${tenantId}\n${agentId}`),
  };
}

async function checkDefinition(deps: AgentsDeps, tenantId: string, definition: AgentBody): Promise<void> {
  const { model, systemPrompt, tools } = definition;
  const isMostlyPrompt = systemPrompt.length > JSON.stringify(tools).length;
  checkDefinitionSize(definition, isMostlyPrompt ? "systemPrompt" : "tools");
  await checkChatModel(deps.gateway, { tenantId, model, param: "model" });
  for (const [index, tool] of tools.entries()) {
    await kindOf(tool).check?.(tool.config, { deps, tenantId, field: `tools[${index}].config` });
  }
  const rules = tools.flatMap(({ approval }, index) =>
    approval?.when === undefined ? [] : [{ field: `tools[${index}].approval`, rule: approval.when }],
  );
  await deps.evaluator.checkRules({ tenantId }, rules);
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
