import { z } from "zod";
import { defined, toView } from "../../src/lib/defined.ts";
import { AppError, invalidRequest } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { mapPage } from "../../src/store/page.ts";
import type { ShownWidgetKey } from "../../src/store/widget-key-store.ts";
import { endOfMadeKey } from "../../src/tenancy/roles.ts";
import { isWidgetKey } from "../../src/tenancy/widget-keys.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

/** A field or parameter that is misspelt must not make a key that may do more, or revoke another one. */
const query = z.strictObject({});
/** Names for a model that the gateway picks. */
const anyModel = ["meta-llm", "auto"];
const agentFields = {
  agent_id: idSchema("agent").optional(),
  agentId: idSchema("agent").optional().describe("The same as `agent_id`"),
};
/** An origin as browsers send it: scheme, host and port, and nothing after. */
const originSchema = z
  .string()
  .max(300)
  .refine((text) => URL.canParse(text) && new URL(text).origin === text, "must be an origin, as https://acme.io");

const createBody = z.strictObject({
  ...agentFields,
  allowedOrigins: z.array(originSchema).min(1).max(50).optional(),
  models: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(20)
    .optional()
    .describe("Models that visitors may choose, the first by default; without it any"),
  maxTokens: z.number().int().min(1).max(1_000_000).optional().describe("Cap on the tokens of one response"),
});

const widgetKeyView = z.object({
  id: idSchema("apiKey"),
  keyPreview: z.string(),
  agent_id: z.string().optional(),
  allowedOrigins: z.array(z.string()).optional(),
  models: z.array(z.string()).optional(),
  maxTokens: z.number().int().optional(),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().optional().describe("When the key that made it ends, if it does"),
});
const newWidgetKey = z.object({ id: idSchema("apiKey"), key: z.string(), keyPreview: z.string() });

const revokeBody = z.strictObject({
  key: z.string().refine(isWidgetKey, "must be a widget key").optional(),
  id: idSchema("apiKey").optional(),
  keyPreview: z.string().max(50).optional(),
  ...agentFields,
});

const routes = declareRoutes({ auth: "admin", tags: ["Widget keys"], bodyLimit: "settings" });

export const widgetKeyRoutes = [
  routes.post("/ai/widget/key", {
    summary: "Make a publishable key that can only chat",
    description:
      "It may stand in a page or an app. `allowedOrigins` names the pages that may use it; without it any page may. With " +
      "`agent_id` it chats by the model and the system prompt of that agent, without its tools; otherwise `models` bounds the choice of its visitors. The key is in this response only. " +
      "Unknown fields and parameters are refused.",
    query,
    body: named("WidgetKeyRequest", createBody),
    isBodyOptional: true,
    hasSecretReply: true,
    responses: { 201: { description: "The new key", body: named("NewWidgetKey", newWidgetKey) } },
    errors: ["not_found", "unknown_model", "quota_exceeded"],
    async result({ body: { allowedOrigins, models, maxTokens, ...body }, caller, platform }) {
      const scopedTo = readAgentId(body);
      if (scopedTo !== undefined) await platform.agents.get(caller.tenantId, scopedTo);
      if (scopedTo !== undefined && models !== undefined) {
        throw invalidRequest("models", "models: a key of an agent has the agent's model.");
      }
      for (const model of models ?? []) {
        if (anyModel.includes(model) || (await platform.gateway.findModel(caller.tenantId, model))) continue;
        const message = `There is no model ${JSON.stringify(model)}; GET /ai/models lists them.`;
        throw new AppError("unknown_model", message, { param: "models" });
      }
      await platform.quotas.check(caller.tenantId, "widgetKeys");
      const { key, record } = await platform.tenancy.widgetKeys.create({
        tenantId: caller.tenantId,
        createdBy: caller.subject,
        ...defined({ collections: caller.collections }),
        ...defined({ agentId: scopedTo, allowedOrigins, models, maxTokens, expiresAt: endOfMadeKey(caller) }),
      });
      return { id: record._id, key, keyPreview: record.preview };
    },
  }),
  routes.get("/ai/widget/keys", {
    summary: "Widget keys of the tenant, newest first",
    query: pageQuery("apiKey"),
    responses: {
      200: { description: "A page of keys, by their previews", body: listOf(named("WidgetKey", widgetKeyView)) },
    },
    result: async ({ query: page, caller, platform }) =>
      mapPage(await platform.tenancy.widgetKeys.list(caller.tenantId, page), toKeyView),
  }),
  routes.delete("/ai/widget/key", {
    summary: "Revoke a widget key, or those of an agent",
    description:
      "Name the key by `key`, `id` or `keyPreview`; several of them must fit the same key. `agent_id` alone revokes all keys of " +
      "that agent. Without a body the tenant's only key of no agent is revoked; if it has several, the response is a 409 that " +
      "lists them. A revoked key is refused everywhere within 5 seconds. Unknown fields and parameters are refused.",
    query,
    body: named("WidgetKeySelector", revokeBody),
    isBodyOptional: true,
    responses: { 204: { description: "It was revoked" } },
    errors: ["not_found", "wrong_state"],
    result: ({ body: { key, id, keyPreview, ...body }, caller, platform }) =>
      platform.tenancy.widgetKeys.revoke(caller.tenantId, defined({ key, id, keyPreview, agentId: readAgentId(body) })),
  }),
];

/** The agent under either name. @throws AppError `invalid_request` when both name one, and not the same. */
function readAgentId({ agent_id, agentId: same }: { agent_id?: string | undefined; agentId?: string | undefined }) {
  if (agent_id !== undefined && same !== undefined && agent_id !== same) {
    throw invalidRequest("agentId", "agentId: agent_id names another agent.");
  }
  return agent_id ?? same;
}

const toKeyView = ({ _id: id, preview: keyPreview, agentId: agent_id, ...rest }: ShownWidgetKey) =>
  toView({ id, keyPreview, agent_id, ...rest });
