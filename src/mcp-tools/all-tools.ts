import { z } from "zod";
import { runBodySchema, runResultSchema } from "../agents/schemas.ts";
import { compositeBodySchema, compositeResultSchema } from "../composite/schemas.ts";
import { toChatRequest } from "../gateway/chat/request.ts";
import { toChatResponse } from "../gateway/chat/response.ts";
import { listedModelSchema, modelQuerySchema } from "../gateway/model-schemas.ts";
import { chatBodySchema, chatResponseSchema } from "../gateway/schemas.ts";
import { notFound } from "../lib/errors.ts";
import { idSchema } from "../lib/ids.ts";
import { checkHealth, readinessSchema } from "../observe/health.ts";
import { queryBodySchema, queryOutcomeSchema } from "../rag/query-schemas.ts";
import {
  addedTenantSchema,
  addTenantSchema,
  createOrganizationSchema,
  getOrganizationSchema,
  organizationViewSchema,
} from "../tenancy/organizations.ts";
import { maySee } from "../tenancy/roles.ts";
import { type AnyTool, toGatewayCaller, tool } from "./tool.ts";

/** Every tool of the tool server, in the order of its list. */
export const allTools: readonly AnyTool[] = [
  tool({
    name: "svc_chat",
    title: "Ask a model",
    hints: { readOnlyHint: true },
    output: chatResponseSchema,
    description:
      "Ask a language model. Returns its answer as `text`, with the model that answered, token counts and cost. " +
      "`model` is an id of svc_models, `meta-llm` (the default) or `auto`, which picks one for the task.",
    input: chatBodySchema.omit({ stream: true, prefer_async: true }),
    async run(call, given) {
      const request = toChatRequest({ ...given, stream: false });
      return toChatResponse(await call.platform.gateway.complete(toGatewayCaller(call), request));
    },
  }),
  tool({
    name: "svc_rag_query",
    title: "Search the documents",
    hints: { readOnlyHint: true, openWorldHint: false },
    output: queryOutcomeSchema,
    description:
      "Search the ingested documents by meaning and words. Returns chunks, best first, each with its document, title, page and score.",
    input: queryBodySchema,
    run: ({ platform, caller, signal }, given) => platform.rag.query(caller, given, signal),
  }),
  tool({
    name: "svc_agent_run",
    title: "Run an agent",
    hints: {},
    output: runResultSchema,
    description:
      "Run an agent, named by `agentId` or by `name`: it thinks and uses its tools until it answers. Returns `output` and " +
      "`runId`, under which the audit log stays readable. A long run returns a `jobId` for svc_job instead and continues.",
    input: runBodySchema
      .extend({
        agentId: idSchema("agent").optional().describe("The agent; required unless `name` is given"),
        name: z.string().trim().min(1).max(200).optional().describe("The agent's name, if only one agent has it"),
      })
      .refine((given) => (given.agentId === undefined) !== (given.name === undefined), {
        path: ["agentId"],
        message: "give either agentId or name",
      }),
    async start(call, { agentId, name = "", ...body }) {
      const { agents } = call.platform;
      const id = agentId ?? (await agents.idOf(call.caller.tenantId, name));
      await call.platform.quotas.check(call.caller.tenantId, "openJobs");
      return (await agents.accept({ caller: call.caller, agentId: id, body, isInteractive: true })).job;
    },
  }),
  tool({
    name: "svc_composite_execute",
    title: "Ask several models",
    hints: { readOnlyHint: true },
    output: compositeResultSchema,
    description:
      "Answer a question by several model calls (a pattern) in the voice of an industry profile. Returns `output` with the " +
      "agreement of the models. Inputs of the profiles healthcare and financial must hold no personal identifiers. A long " +
      "run returns a `jobId` for svc_job instead and continues.",
    input: compositeBodySchema,
    async start({ platform, caller }, body) {
      await platform.quotas.check(caller.tenantId, "openJobs");
      return (await platform.composite.accept({ caller, body, isInteractive: true })).job;
    },
  }),
  tool({
    name: "svc_job",
    title: "Follow a long run",
    hints: { readOnlyHint: true, openWorldHint: false },
    description:
      "Follow a long run by the `jobId` that its tool returned: waits for its end and returns what that tool would have " +
      "returned, or the `jobId` again while it runs.",
    input: z.object({ jobId: idSchema("job") }),
    async start({ platform, caller }, { jobId }) {
      const job = await platform.jobs.get(caller.tenantId, jobId);
      if (!maySee(caller, job.keyId)) throw notFound("job");
      return job;
    },
  }),
  tool({
    name: "svc_models",
    title: "List the models",
    hints: { readOnlyHint: true, openWorldHint: false },
    output: z.object({ models: z.array(listedModelSchema) }),
    description: "List the models that svc_chat takes, with context sizes, features and prices.",
    input: modelQuerySchema,
    run: async ({ platform, caller }, given) => ({ models: await platform.gateway.models(caller.tenantId, given) }),
  }),
  tool({
    name: "svc_health",
    title: "Check the platform",
    hints: { readOnlyHint: true, openWorldHint: false },
    output: readinessSchema,
    description: "Check whether the platform can do its work: the store, Redis and the workers.",
    input: z.object({}),
    run: ({ platform }) => checkHealth(platform),
  }),
  tool({
    name: "svc_org_create",
    title: "Create an organization",
    hints: { destructiveHint: false, openWorldHint: false },
    output: organizationViewSchema,
    description: "Create an organization. Your tenant joins it, and you become its owner.",
    role: "owner",
    input: createOrganizationSchema,
    run: ({ platform, caller }, given) => platform.organizations.create(caller, given),
  }),
  tool({
    name: "svc_org_get",
    title: "Read an organization",
    hints: { readOnlyHint: true, openWorldHint: false },
    output: organizationViewSchema,
    description: "Get the tenants and members of an organization that you are a member of.",
    input: getOrganizationSchema,
    run: ({ platform, caller }, { organizationId }) => platform.organizations.get(caller, organizationId),
  }),
  tool({
    name: "svc_org_add_tenant",
    title: "Add a tenant to an organization",
    hints: { destructiveHint: false, idempotentHint: true, openWorldHint: false },
    output: addedTenantSchema,
    description:
      "Add a tenant to an organization that you own: an existing one by `tenantId`, or a new one by `name`. Only this answer " +
      "holds the first API key of a new tenant.",
    role: "owner",
    input: addTenantSchema,
    run: ({ platform, caller }, given) => platform.organizations.addTenant(caller, given),
  }),
];
