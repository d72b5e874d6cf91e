import { checkDefinitionSize, shortDescription } from "../definition-limits.ts";
import { AppError, notFound } from "../errors.ts";
import { makeFreshCache } from "../fresh-cache.ts";
import { newId } from "../ids.ts";
import type { AgentDefinition, AgentRecord, AgentSummaryRecord } from "../store/agent-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import { type Caller, hasRole } from "../tenancy/roles.ts";
import type { AgentsDeps } from "./deps.ts";
import type { AgentBody, AgentReplacement, AgentSummary, AgentView } from "./schemas.ts";
import type { ToolSpec } from "./tools/tool-configs.ts";

/** Changes of one agent at once that a replacement without a version gives way to, and tries again. */
const REPLACE_TRIES = 5;
/** Agents of one name that a refusal tells. */
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
  /** What an agent is, or was a few seconds ago; null when there is none. */
  definitionOf(tenantId: string, agentId: string): Promise<AgentDefinition | null>;
};

/** Agents as they are defined. Members manage their own; admins those of others too. */
export function makeDefinitions(deps: Pick<AgentsDeps, "store" | "gateway" | "outside" | "quotas">): Definitions {
  const { agents } = deps.store;
  const recent = makeFreshCache(async (key) => {
    const [tenantId = "", agentId = ""] = key.split("\n");
    return (await agents.get(tenantId, agentId))?.definition ?? null;
  });
  const find = async (tenantId: string, agentId: string) => {
    const agent = await agents.get(tenantId, agentId);
    if (!agent) throw notFound("agent");
    return agent;
  };
  const findToManage = async (caller: Caller, agentId: string) => {
    const agent = await find(caller.tenantId, agentId);
    if (agent.createdBy === caller.subject || hasRole(caller.role, "admin")) return agent;
    throw new AppError("insufficient_role", "Only an admin changes the agents of others.");
  };
  return {
    async create(caller, definition) {
      await checkDefinition(deps, caller.tenantId, definition);
      await deps.quotas.check(caller.tenantId, "agents");
      const now = new Date();
      const { tenantId, subject: createdBy } = caller;
      const agent = {
        _id: newId("agent"),
        tenantId,
        definition,
        version: 1,
        createdBy,
        createdAt: now,
        updatedAt: now,
      };
      await agents.insert(agent);
      return toAgentView(agent);
    },
    list: async (tenantId, page) => mapPage(await agents.list(tenantId, page), toAgentSummary),
    get: async (tenantId, agentId) => toAgentView(await find(tenantId, agentId)),
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
      await findToManage(caller, agentId);
      await checkDefinition(deps, caller.tenantId, definition);
      for (let tries = 0; tries < REPLACE_TRIES; tries += 1) {
        const { version } = await find(caller.tenantId, agentId);
        if (expected !== undefined && expected !== version) {
          throw new AppError("wrong_state", `The agent is at version ${version}.`, { details: { version } });
        }
        const replaced = await agents.replace(caller.tenantId, agentId, { version, definition });
        if (replaced) return toAgentView(replaced);
      }
      throw new AppError("wrong_state", "The agent is changed by others at the same time.");
    },
    async remove(caller, agentId) {
      await findToManage(caller, agentId);
      if (!(await agents.remove(caller.tenantId, agentId))) throw notFound("agent");
    },
    definitionOf: async (tenantId, agentId) => recent.find(`${tenantId}\n${agentId}`),
  };
}

async function checkDefinition(
  deps: Pick<AgentsDeps, "store" | "gateway" | "outside">,
  tenantId: string,
  definition: AgentDefinition,
): Promise<void> {
  const { model, systemPrompt, tools } = definition;
  const isMostlyPrompt = systemPrompt.length > JSON.stringify(tools).length;
  checkDefinitionSize(definition, isMostlyPrompt ? "systemPrompt" : "tools");
  const type = model === "auto" ? "chat" : deps.gateway.findModel(model)?.type;
  if (type === undefined || type === "embedding") {
    throw new AppError("unknown_model", `There is no chat model ${model}; GET /ai/models lists them.`, {
      param: "model",
    });
  }
  for (const [index, tool] of tools.entries()) {
    await checkTool(deps, tenantId, tool, `tools[${index}].config`);
  }
}

/** Checks what a tool names. @throws AppError `invalid_request` for a field below `at`. */
async function checkTool(
  { store, outside }: Pick<AgentsDeps, "store" | "outside">,
  tenantId: string,
  { type, config }: ToolSpec,
  at: string,
): Promise<void> {
  const missing = (what: string, field: string) =>
    new AppError("invalid_request", `There is no such ${what}.`, { param: `${at}.${field}` });
  if (type === "agent" && !(await store.agents.get(tenantId, config.agentId))) throw missing("agent", "agentId");
  if (type === "workflow" && !(await store.workflows.get(tenantId, config.workflowId)))
    throw missing("workflow", "workflowId");
  if (type === "mcp") outside.check(config.url, `${at}.url`);
}

function toAgentSummary({ _id, definition, createdAt, updatedAt, ...record }: AgentSummaryRecord): AgentSummary {
  const { name, description, model, tools } = definition;
  return {
    agentId: _id,
    name,
    ...(description === undefined ? {} : { description: shortDescription(description) }),
    model,
    toolTypes: [...new Set(tools.map(({ type }) => type))],
    status: "active",
    ...record,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function toAgentView({ _id, definition, version, createdBy, createdAt, updatedAt }: AgentRecord): AgentView {
  return {
    agentId: _id,
    ...definition,
    tools: definition.tools.map((tool) => ({ ...tool })),
    status: "active",
    version,
    createdBy,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
