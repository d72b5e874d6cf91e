import { z } from "zod";
import { AppError } from "../../src/errors.ts";
import { idSchema } from "../../src/ids.ts";
import { mapPage } from "../../src/store/page.ts";
import { isWidgetKey } from "../../src/tenancy/widget-keys.ts";
import { listOf, listQuery } from "../list-query.ts";
import { type AnyRoute, route } from "../route.ts";

const tags = ["Widget keys"];

const agentId = idSchema("agent");
/** An origin as browsers send it: scheme, host and port, and nothing after. */
const originSchema = z
  .string()
  .max(300)
  .refine((text) => URL.canParse(text) && new URL(text).origin === text, "must be an origin, as https://acme.io");

const createKey = route({
  method: "post",
  path: "/ai/widget/key",
  auth: "admin",
  tags,
  summary: "Make a publishable key that can only chat",
  description:
    "It may stand in a page or an app. `allowedOrigins` names the pages that may use it; without it any page may. With " +
    "`agent_id` it chats as that agent. The key is in this answer only.",
  body: z.object({
    agent_id: agentId.optional(),
    allowedOrigins: z.array(originSchema).min(1).max(50).optional(),
  }),
  isBodyOptional: true,
  hasSecretReply: true,
  responses: { 201: { description: "The new key", body: z.object({ key: z.string(), keyPreview: z.string() }) } },
  errors: ["not_found"],
  async handler({ body, caller, platform }) {
    const { agent_id: scopedTo, allowedOrigins } = body;
    if (scopedTo !== undefined) await platform.agents.get(caller.tenantId, scopedTo);
    const { key, record } = await platform.tenancy.widgetKeys.create({
      tenantId: caller.tenantId,
      createdBy: caller.subject,
      ...(scopedTo === undefined ? {} : { agentId: scopedTo }),
      ...(allowedOrigins === undefined ? {} : { allowedOrigins }),
    });
    return { status: 201, body: { key, keyPreview: record.preview } };
  },
});

const listKeys = route({
  method: "get",
  path: "/ai/widget/keys",
  auth: "admin",
  tags,
  summary: "Widget keys of the tenant, newest first",
  query: listQuery.extend({ cursor: idSchema("apiKey").optional() }),
  responses: {
    200: {
      description: "A page of keys, by their previews",
      body: listOf(
        z.object({
          keyPreview: z.string(),
          agent_id: z.string().optional(),
          allowedOrigins: z.array(z.string()).optional(),
          createdAt: z.iso.datetime(),
        }),
      ),
    },
  },
  async handler({ query, caller, platform }) {
    const page = await platform.tenancy.widgetKeys.list(caller.tenantId, query);
    const views = mapPage(page, ({ preview, agentId: scopedTo, allowedOrigins, createdAt }) => ({
      keyPreview: preview,
      ...(scopedTo === undefined ? {} : { agent_id: scopedTo }),
      ...(allowedOrigins === undefined ? {} : { allowedOrigins }),
      createdAt: createdAt.toISOString(),
    }));
    return { status: 200, body: views };
  },
});

const revokeKey = route({
  method: "delete",
  path: "/ai/widget/key",
  auth: "admin",
  tags,
  summary: "Revoke widget keys",
  description:
    "Names one by `key` or `keyPreview`, or those of an agent by `agent_id`; without a body those of no agent are meant. " +
    "They are refused everywhere within 5 seconds.",
  body: z.object({
    key: z.string().refine(isWidgetKey, "must be a widget key").optional(),
    keyPreview: z.string().max(50).optional(),
    agent_id: agentId.optional(),
  }),
  isBodyOptional: true,
  responses: { 204: { description: "It was revoked" } },
  errors: ["not_found"],
  async handler({ body: { key, keyPreview, agent_id: scopedTo }, caller, platform }) {
    const named = [key, keyPreview, scopedTo].filter((value) => value !== undefined);
    if (named.length > 1) {
      throw new AppError("invalid_request", "Name the key in one way: key, keyPreview or agent_id.", { param: "key" });
    }
    const choice =
      key !== undefined
        ? { key }
        : keyPreview !== undefined
          ? { preview: keyPreview }
          : scopedTo !== undefined
            ? { agentId: scopedTo }
            : { isUnscoped: true as const };
    await platform.tenancy.widgetKeys.revoke(caller.tenantId, choice);
    return { status: 204 };
  },
});

export const widgetKeyRoutes: readonly AnyRoute[] = [createKey, listKeys, revokeKey];
