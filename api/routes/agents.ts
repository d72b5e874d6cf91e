import { z } from "zod";
import {
  agentBodySchema,
  agentReplacementSchema,
  agentSummarySchema,
  agentViewSchema,
  runBodySchema,
  runResultSchema,
  runSummarySchema,
  runViewSchema,
} from "../../src/agents/schemas.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { acceptedSchema, serveJob, withCallback } from "../prefer.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { modelCallErrors } from "./chat.ts";

const params = z.object({ id: idSchema("agent") });
const example = {
  name: "Maintenance desk",
  model: "meta-llm",
  systemPrompt: "You answer questions on the plant's machines from its manuals.",
  tools: [{ type: "rag_query", config: {} }],
};

const routes = declareRoutes({ auth: "member", tags: ["Agents"] });

export const agentRoutes = [
  routes.post("/agents", {
    summary: "Create an agent",
    description: "A tool of an unknown type, or with a config that does not fit it, is refused.",
    body: agentBodySchema,
    example,
    responses: { 201: { description: "The agent", body: agentViewSchema } },
    errors: ["unknown_model", "source_refused", "quota_exceeded", "wrong_state", "not_found"],
    result: ({ body, caller, platform }) => platform.agents.create(caller, body),
  }),
  routes.get("/agents", {
    summary: "Agents of the tenant, newest first",
    description: "Each without its prompt and the configuration of its tools, which `/agents/:id` shows.",
    query: pageQuery("agent"),
    responses: { 200: { description: "A page of agents", body: listOf(agentSummarySchema) } },
    result: ({ query, caller, platform }) => platform.agents.list(caller.tenantId, query),
  }),
  routes.get("/agents/:id", {
    summary: "One agent",
    params,
    responses: { 200: { description: "The agent", body: agentViewSchema } },
    result: ({ params: { id }, caller, platform }) => platform.agents.get(caller.tenantId, id),
  }),
  routes.put("/agents/:id", {
    summary: "Replace an agent by its next version",
    description:
      "Runs that have started keep their version. Members replace their own agents, admins those of others too.",
    params,
    body: agentReplacementSchema,
    example,
    responses: { 200: { description: "The agent", body: agentViewSchema } },
    errors: ["unknown_model", "source_refused", "insufficient_role", "wrong_state", "quota_exceeded"],
    result: ({ params: { id }, body, caller, platform }) => platform.agents.replace(caller, id, body),
  }),
  routes.delete("/agents/:id", {
    summary: "Delete an agent",
    description:
      "Its widget keys are revoked, its runs stay readable. Members delete their own agents, admins those of others too.",
    params,
    responses: { 204: { description: "It was deleted" } },
    errors: ["insufficient_role"],
    async result({ params: { id }, caller, platform: { agents, tenancy } }) {
      await agents.remove(caller, id);
      await tenancy.widgetKeys.revokeOf(caller.tenantId, id);
    },
  }),
  routes.post("/agents/:id/run", {
    summary: "Run an agent",
    description:
      "The agent thinks, uses its tools and observes until it answers, or a limit stops it (`status: stopped`, with the reason " +
      "and the best answer so far). Each iteration can be followed at `/jobs/:id/events`, and stays readable as an audit trail.",
    params,
    body: named("AgentRunRequest", runBodySchema.extend(withCallback)),
    isAsync: true,
    responses: {
      200: { description: "The agent's answer", body: runResultSchema },
      202: { description: "The agent is running", body: acceptedSchema },
    },
    errors: [...modelCallErrors, "source_refused"],
    example: { input: "When is pump P-100 bled?", sessionId: "desk-7" },
    handler(input) {
      const { params: path, body, caller, platform } = input;
      const request = { caller, agentId: path.id, body };
      return serveJob(input, { accept: (job) => platform.agents.accept({ ...request, ...job }) });
    },
  }),
  routes.get("/agents/:id/runs", {
    summary: "Runs of an agent, newest first",
    description: "Includes runs that the agent made for other agents. Input and output are in each run.",
    params,
    query: pageQuery("run").extend({ sessionId: z.string().max(256).optional() }),
    responses: { 200: { description: "A page of runs", body: listOf(runSummarySchema) } },
    result: ({ params: { id }, query, caller, platform }) => platform.agents.runs(caller, id, query),
  }),
  routes.get("/agents/:id/runs/:runId", {
    summary: "A run with its audit trail",
    description:
      "One step an iteration. The trail is a chain of hashes, recomputed at each read: `integrity.verified` says whether " +
      "it is intact, and `integrity.breach` where it is broken.",
    params: params.extend({ runId: idSchema("run") }),
    responses: { 200: { description: "The run", body: runViewSchema } },
    result: ({ params: { id, runId }, caller, platform }) => platform.agents.runOf(caller, runId, id),
  }),
  routes.get("/runs/:runId/trail", {
    summary: "A run with its audit trail, of whichever agent",
    description: "The same as `/agents/:id/runs/:runId`. The page `/runs/:runId` shows it as a timeline.",
    params: z.object({ runId: idSchema("run") }),
    responses: { 200: { description: "The run", body: runViewSchema } },
    result: ({ params: { runId }, caller, platform }) => platform.agents.runOf(caller, runId),
  }),
];
