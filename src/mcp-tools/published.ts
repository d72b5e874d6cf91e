import { z } from "zod";
import { runBodySchema, runResultSchema } from "../agents/schemas.ts";
import { queryBodySchema, queryOutcomeSchema } from "../rag/schemas.ts";
import type { Caller } from "../tenancy/roles.ts";
import { MAX_PUBLISHED } from "../tool-names.ts";
import { executeBodySchema, workflowResultSchema } from "../workflows/schemas.ts";
import { type AnyTool, type ToolPlatform, tool } from "./tool.ts";

/** The tools of a tenant's own: agents, workflows and sets of documents that it has published. */

type Published = { _id: string; name: string; description: string };

/** All of them that a key may use, by name. */
export async function listPublished(
  { agents, workflows, searchTools }: ToolPlatform,
  caller: Caller,
): Promise<AnyTool[]> {
  const [ofAgents, ofWorkflows, ofDocuments] = await Promise.all([
    agents.listPublished(caller.tenantId, MAX_PUBLISHED),
    workflows.listPublished(caller.tenantId, MAX_PUBLISHED),
    searchTools.listPublished(caller, MAX_PUBLISHED),
  ]);
  const all = [...ofDocuments.map(toSearchTool), ...ofWorkflows.map(toWorkflowTool), ...ofAgents.map(toAgentTool)];
  return [...new Map(all.map((each) => [each.name, each])).values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The tool of a name; undefined when the key has none. Of several, which an earlier version could make, the agent. */
export async function findPublished(
  { agents, workflows, searchTools }: ToolPlatform,
  caller: Caller,
  name: string,
): Promise<AnyTool | undefined> {
  const [agent, workflow, search] = await Promise.all([
    agents.findPublished(caller.tenantId, name),
    workflows.findPublished(caller.tenantId, name),
    searchTools.findPublished(caller, name),
  ]);
  if (agent) return toAgentTool(agent);
  if (workflow) return toWorkflowTool(workflow);
  return search ? toSearchTool(search) : undefined;
}

const searchInput = queryBodySchema
  .pick({ query: true })
  .extend({ topK: queryBodySchema.shape.topK.unwrap().optional() });

function toSearchTool({ _id: toolId, name, description }: Published): AnyTool {
  return tool({
    name,
    title: name,
    description,
    hints: { readOnlyHint: true, openWorldHint: false },
    input: searchInput,
    output: queryOutcomeSchema,
    async run({ platform, caller, signal }, given) {
      const scope = await platform.searchTools.scopeOf(caller, toolId);
      const query = queryBodySchema.parse({ ...scope, ...given });
      return platform.rag.query(caller, query, signal);
    },
  });
}

const agentInput = runBodySchema.pick({ input: true, sessionId: true });

function toAgentTool({ _id: agentId, name, description }: Published): AnyTool {
  return tool({
    name,
    title: name,
    description,
    hints: {},
    input: agentInput,
    output: runResultSchema,
    async start({ platform, caller }, body) {
      await platform.quotas.check(caller.tenantId, "openJobs");
      return (await platform.agents.accept({ caller, agentId, body, isInteractive: true })).job;
    },
  });
}

const workflowInput = z
  .looseObject({})
  .refine((input) => executeBodySchema.safeParse({ input }).success, "is longer than the input of a run may be");

/** The arguments are the input of a run, which the workflow's own schema checks when the run is accepted. */
function toWorkflowTool({ _id: workflowId, inputSchema, ...about }: Published & { inputSchema?: string }): AnyTool {
  return tool({
    ...about,
    title: about.name,
    hints: {},
    input: workflowInput,
    inputSchema: inputSchema === undefined ? { type: "object" } : JSON.parse(inputSchema),
    output: workflowResultSchema,
    async start({ platform, caller }, input) {
      await platform.quotas.check(caller.tenantId, "openJobs");
      return (await platform.workflows.accept({ caller, workflowId, body: { input }, isInteractive: true })).job;
    },
  });
}
