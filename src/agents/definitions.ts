import { defined } from "../defined.ts";
import {
  checkChatModel,
  checkDefinitionSize,
  firstVersion,
  keepDefinitions,
  shortDescription,
  toVersionView,
} from "../definitions.ts";
import { AppError, notFound } from "../errors.ts";
import { makeFreshCache } from "../fresh-cache.ts";
import { newId } from "../ids.ts";
import type { AgentDefinition, AgentRecord, AgentSummaryRecord } from "../store/agent-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { Caller } from "../tenancy/roles.ts";
import { withPreviews } from "./credentials.ts";
import type { AgentsDeps } from "./deps.ts";
import type { AgentBody, AgentReplacement, AgentSummary, AgentView } from "./schemas.ts";
import { kindOf } from "./tools.ts";

/** Agents of one name that an error lists. */
const SHOWN_NAMESAKES = 10;

export type Definitions = {
  /** @throws AppError `unknown_model`, `invalid_request` for a tool that leads nowhere, `quota_exceeded`. */
  create(caller: Caller, body: AgentBody): Promise<AgentView>;
  /** The newest first. */
  list(tenantId: string, page: PageQuery): Promise<Page<AgentSummary>>;
  /** @throws AppError `not_found`. */
  get(tenantId: string, agentId: string): Promise<AgentView>;
  /** The id of the one agent of this name. @throws AppError `not_found`; `invalid_request` when several have it. */
  idOf(tenantId: string, name: string): Promise<string>;
  /** The next version. @throws AppError `not_found`, `insufficient_role`, `wrong_state` (another version), as `create`. */
  replace(caller: Caller, agentId: string, body: AgentReplacement): Promise<AgentView>;
  /** Its runs stay. @throws AppError `not_found`, `insufficient_role`. */
  remove(caller: Caller, agentId: string): Promise<void>;
  /** An agent's definition, which may be a few seconds old; null when there is none. */
  definitionOf(tenantId: string, agentId: string): Promise<AgentDefinition | null>;
};

/** The definitions of agents. */
export function makeDefinitions(
  deps: Pick<AgentsDeps, "store" | "gateway" | "egress" | "credentials" | "quotas">,
): Definitions {
  const { agents } = deps.store;
  const kept = keepDefinitions("agent", agents);
  const recent = makeFreshCache(async (key) => {
    const [tenantId = "", agentId = ""] = key.split("\n");
    return (await agents.get(tenantId, agentId))?.definition ?? null;
  });
  return {
    async create(caller, definition) {
      await checkDefinition(deps, caller.tenantId, definition);
      await deps.quotas.check(caller.tenantId, "agents");
      const tools = await deps.credentials.seal(caller.tenantId, definition.tools, []);
      const agent = { _id: newId("agent"), definition: { ...definition, tools }, ...firstVersion(caller) };
      await agents.insert(agent);
      return toAgentView(agent);
    },
    list: async (tenantId, page) => mapPage(await agents.list(tenantId, page), toAgentSummary),
    get: async (tenantId, agentId) => toAgentView(await kept.find(tenantId, agentId)),
    async idOf(tenantId, name) {
      const [only, ...others] = await agents.idsNamed(tenantId, name, SHOWN_NAMESAKES);
      if (only === undefined) throw notFound("agent");
      if (others.length === 0) return only;
      throw new AppError("invalid_request", "Several agents have this name: give the agentId of one.", {
        param: "name",
        details: { agentIds: [only, ...others] },
      });
    },
    async replace(caller, agentId, { version: expected, ...definition }) {
      const { tenantId, definition: earlier } = await kept.findToChange(caller, agentId);
      await checkDefinition(deps, tenantId, definition);
      const tools = await deps.credentials.seal(tenantId, definition.tools, earlier.tools);
      const change = { definition: { ...definition, tools } };
      return toAgentView(await kept.replace(tenantId, agentId, { expected, change }));
    },
    remove: kept.remove,
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
