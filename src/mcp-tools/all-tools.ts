import { z } from "zod";
import { runBodySchema } from "../agents/schemas.ts";
import { compositeBodySchema } from "../composite/schemas.ts";
import { toChatRequest } from "../gateway/chat/request.ts";
import { toChatResponse } from "../gateway/chat/response.ts";
import { chatBodySchema, modelQuerySchema } from "../gateway/schemas.ts";
import { checkHealth } from "../health.ts";
import { idSchema } from "../ids.ts";
import { queryBodySchema } from "../rag/schemas.ts";
import { addTenantSchema, createOrganizationSchema, getOrganizationSchema } from "../tenancy/organizations.ts";
import { type AnyTool, toGatewayCaller, tool, waitForResult } from "./tool.ts";

/** Every tool of the tool server, in the order of its list. */
export const allTools: readonly AnyTool[] = [
  tool({
    name: "svc_chat",
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
    description:
      "Search the ingested documents by meaning and words. Returns chunks, best first, each with its document, title, page and score.",
    input: queryBodySchema,
    async run({ platform, caller, signal }, given) {
      return { results: await platform.rag.query(caller, given, signal) };
    },
  }),
  tool({
    name: "svc_agent_run",
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
    async run(call, { agentId, name = "", ...body }) {
      const { agents } = call.platform;
      const id = agentId ?? (await agents.idOf(call.caller.tenantId, name));
      await call.platform.quotas.check(call.caller.tenantId, "openJobs");
      const { job } = await agents.accept({ caller: call.caller, agentId: id, body, isInteractive: true });
      return waitForResult(call, job);
    },
  }),
  tool({
    name: "svc_composite_execute",
    description:
      "Answer a question by several model calls (a pattern) in the voice of an industry profile. Returns `output` with the " +
      "agreement of the models. Inputs of the profiles healthcare and financial must hold no personal identifiers. A long " +
      "run returns a `jobId` for svc_job instead and continues.",
    input: compositeBodySchema,
    async run(call, given) {
      await call.platform.quotas.check(call.caller.tenantId, "openJobs");
      const { job } = await call.platform.composite.accept({ caller: call.caller, body: given, isInteractive: true });
      return waitForResult(call, job);
    },
  }),
  tool({
    name: "svc_job",
    description:
      "Follow a long run by the `jobId` that its tool returned: waits for its end and returns what that tool would have " +
      "returned, or the `jobId` again while it runs.",
    input: z.object({ jobId: idSchema("job") }),
    run: async (call, { jobId }) => waitForResult(call, await call.platform.jobs.get(call.caller.tenantId, jobId)),
  }),
  tool({
    name: "svc_models",
    description: "List the models that svc_chat takes, with context sizes, features and prices.",
    input: modelQuerySchema,
    run: async ({ platform, caller }, given) => ({ models: await platform.gateway.models(caller.tenantId, given) }),
  }),
  tool({
    name: "svc_health",
    description: "Check whether the platform can do its work: the store, Redis and the workers.",
    input: z.object({}),
    run: ({ platform }) => checkHealth(platform),
  }),
  tool({
    name: "svc_org_create",
    description: "Create an organization. Your tenant joins it, and you become its owner.",
    role: "owner",
    input: createOrganizationSchema,
    run: ({ platform, caller }, given) => platform.organizations.create(caller, given),
  }),
  tool({
    name: "svc_org_get",
    description: "Get the tenants and members of an organization that you are a member of.",
    input: getOrganizationSchema,
    run: ({ platform, caller }, { organizationId }) => platform.organizations.get(caller, organizationId),
  }),
  tool({
    name: "svc_org_add_tenant",
    description:
      "Add a tenant to an organization that you own: an existing one by `tenantId`, or a new one by `name`. Only this answer " +
      "holds the first API key of a new tenant.",
    role: "owner",
    input: addTenantSchema,
    run: ({ platform, caller }, given) => platform.organizations.addTenant(caller, given),
  }),
];
