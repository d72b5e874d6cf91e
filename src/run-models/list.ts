import type { AgentSummary } from "../agents/schemas.ts";
import { patternIds } from "../composite/patterns.ts";
import { AGENT, COMPOSITE } from "../gateway/run-model-names.ts";
import { AppError } from "../lib/errors.ts";
import { findAgent } from "./agent-run.ts";
import type { RunModelsDeps } from "./deps.ts";
import { parseComposite } from "./names.ts";

/** Agents that a list of models has at most: the newest. All of them can be called. */
const MAX_LISTED = 100;
/** Longest name of a model that a chat takes, in characters. */
const MAX_NAME = 200;

/** An agent or a pattern in a list of models. */
export type RunModel = { id: string; ownedBy: "agents" | "composite"; createdAt?: string };

/** The tenant's newest agents, by their names where one alone has it, and the patterns. */
export async function listRunModels({ agents }: Pick<RunModelsDeps, "agents">, tenantId: string): Promise<RunModel[]> {
  const { data } = await agents.list(tenantId, { limit: MAX_LISTED });
  const counts = new Map<string, number>();
  for (const { name } of data) counts.set(name, (counts.get(name) ?? 0) + 1);
  const isClear = ({ name }: AgentSummary) => counts.get(name) === 1 && AGENT.length + name.length <= MAX_NAME;
  const named = data.map((agent) => toEntry(`${AGENT}${isClear(agent) ? agent.name : agent.agentId}`, agent));
  return [...named, ...patternIds.map((id) => ({ id: `${COMPOSITE}${id}`, ownedBy: "composite" as const }))];
}

/** The agent or the pattern of a name; undefined when there is none. @throws AppError `invalid_request` for a name of several. */
export async function findRunModel(
  deps: RunModelsDeps,
  tenantId: string,
  model: string,
): Promise<RunModel | undefined> {
  try {
    if (model.startsWith(AGENT))
      return toEntry(model, await deps.agents.get(tenantId, await findAgent(deps, tenantId, model)));
    if (!model.startsWith(COMPOSITE)) return undefined;
    parseComposite(model);
    return { id: model, ownedBy: "composite" };
  } catch (error) {
    if (error instanceof AppError && (error.code === "unknown_model" || error.code === "not_found")) return undefined;
    throw error;
  }
}

const toEntry = (id: string, { createdAt }: Pick<AgentSummary, "createdAt">): RunModel => {
  return { id, ownedBy: "agents", createdAt };
};
