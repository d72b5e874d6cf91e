import { z } from "zod";
import { runBodySchema, runResultSchema } from "../agents/schemas.ts";
import { MAX_PUBLISHED } from "../definitions/tool-names.ts";
import { queryBodySchema, queryOutcomeSchema } from "../rag/query-schemas.ts";
import type { Published as Page, PageOfPublished } from "../store/published.ts";
import type { Caller } from "../tenancy/roles.ts";
import { executeBodySchema, workflowResultSchema } from "../workflows/schemas.ts";
import { type AnyTool, type ToolPlatform, tool } from "./tool.ts";

/** The tools of a tenant's own: agents, workflows and sets of documents that it has published. */

type Published = { _id: string; name: string; description: string };

/** A page of those that a key may use, by name. `end`: the name after which there are more; null on the last page. */
export async function listPublished(
  { agents, workflows, searchTools }: ToolPlatform,
  caller: Caller,
  { after, maxBytes }: Pick<PageOfPublished, "after" | "maxBytes">,
): Promise<Page<AnyTool>> {
  const page = { after, limit: MAX_PUBLISHED, maxBytes };
  const [ofAgents, ofWorkflows, ofDocuments] = await Promise.all([
    agents.listPublished(caller.tenantId, page),
    workflows.listPublished(caller.tenantId, page),
    searchTools.listPublished(caller, page),
  ]);
  const ends = [ofAgents.end, ofWorkflows.end, ofDocuments.end].filter((end) => end !== null).sort();
  const end = ends[0] ?? null; // beyond the first of them it is not known which is the next
  const all = [
    ...ofDocuments.tools.map(toSearchTool),
    ...ofWorkflows.tools.map(toWorkflowTool),
    ...ofAgents.tools.map(toAgentTool),
  ].filter(({ name }) => end === null || name <= end);
  const byName = new Map(all.map((each) => [each.name, each]));
  return { tools: [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), end };
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
    inputSchema: inputSchema ?? '{"type":"object"}',
    output: workflowResultSchema,
    async start({ platform, caller }, input) {
      await platform.quotas.check(caller.tenantId, "openJobs");
      return (await platform.workflows.accept({ caller, workflowId, body: { input }, isInteractive: true })).job;
    },
  });
}
