import { z } from "zod";
import { runBodySchema, runResultSchema } from "../agents/schemas.ts";
import { MAX_PUBLISHED } from "../published-tools.ts";
import { executeBodySchema, workflowResultSchema } from "../workflows/schemas.ts";
import { type AnyTool, type ToolPlatform, tool } from "./tool.ts";

/** The tools of a tenant's own: agents and workflows that it has published. */

type Published = { _id: string; name: string; description: string };

/** All of them, by name. */
export async function listPublished({ agents, workflows }: ToolPlatform, tenantId: string): Promise<AnyTool[]> {
  const [ofAgents, ofWorkflows] = await Promise.all([
    agents.listPublished(tenantId, MAX_PUBLISHED),
    workflows.listPublished(tenantId, MAX_PUBLISHED),
  ]);
  const all = [...ofWorkflows.map(toWorkflowTool), ...ofAgents.map(toAgentTool)];
  return [...new Map(all.map((each) => [each.name, each])).values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The tool of a name; undefined when the tenant has none. Of an agent and a workflow, made at the same time, the agent. */
export async function findPublished(
  { agents, workflows }: ToolPlatform,
  tenantId: string,
  name: string,
): Promise<AnyTool | undefined> {
  const agent = await agents.findPublished(tenantId, name);
  if (agent) return toAgentTool(agent);
  const workflow = await workflows.findPublished(tenantId, name);
  return workflow ? toWorkflowTool(workflow) : undefined;
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
