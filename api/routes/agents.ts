import { z } from "zod";
import { agentBodySchema, agentReplacementSchema, agentViewSchema } from "../../src/agents/schemas.ts";
import { idSchema } from "../../src/ids.ts";
import { listOf, listQuery, toPage } from "../list-query.ts";
import { type AnyRoute, route } from "../route.ts";

const tags = ["Agents"];
const params = z.object({ id: idSchema("agent") });
const example = {
  name: "Maintenance desk",
  model: "meta-llm",
  systemPrompt: "You answer questions on the plant's machines from its manuals.",
  tools: [{ type: "rag_query", config: {} }],
};

const createAgent = route({
  method: "post",
  path: "/agents",
  auth: "member",
  tags,
  summary: "Create an agent",
  description: "A tool of an unknown type, or with a config that does not fit it, is refused here.",
  body: agentBodySchema,
  example,
  responses: { 201: { description: "The agent", body: agentViewSchema } },
  errors: ["unknown_model"],
  async handler({ body, caller, platform }) {
    return { status: 201, body: await platform.agents.create(caller, body) };
  },
});

const listAgents = route({
  method: "get",
  path: "/agents",
  auth: "member",
  tags,
  summary: "Agents of the tenant, newest first",
  query: listQuery.extend({ cursor: idSchema("agent").optional() }),
  responses: { 200: { description: "A page of agents", body: listOf(agentViewSchema) } },
  async handler({ query, caller, platform }) {
    return { status: 200, body: await platform.agents.list(caller.tenantId, toPage(query)) };
  },
});

const getAgent = route({
  method: "get",
  path: "/agents/:id",
  auth: "member",
  tags,
  summary: "One agent",
  params,
  responses: { 200: { description: "The agent", body: agentViewSchema } },
  async handler({ params: { id }, caller, platform }) {
    return { status: 200, body: await platform.agents.get(caller.tenantId, id) };
  },
});

const replaceAgent = route({
  method: "put",
  path: "/agents/:id",
  auth: "member",
  tags,
  summary: "Replace an agent by its next version",
  description: "Runs that have begun go on as they were. Members replace their own agents, admins those of others too.",
  params,
  body: agentReplacementSchema,
  example,
  responses: { 200: { description: "The agent", body: agentViewSchema } },
  errors: ["unknown_model", "insufficient_role", "wrong_state"],
  async handler({ params: { id }, body, caller, platform }) {
    return { status: 200, body: await platform.agents.replace(caller, id, body) };
  },
});

const removeAgent = route({
  method: "delete",
  path: "/agents/:id",
  auth: "member",
  tags,
  summary: "Delete an agent",
  description: "Its runs stay readable. Members delete their own agents, admins those of others too.",
  params,
  responses: { 204: { description: "It is gone" } },
  errors: ["insufficient_role"],
  async handler({ params: { id }, caller, platform }) {
    await platform.agents.remove(caller, id);
    return { status: 204 };
  },
});

export const agentRoutes: readonly AnyRoute[] = [createAgent, listAgents, getAgent, replaceAgent, removeAgent];
