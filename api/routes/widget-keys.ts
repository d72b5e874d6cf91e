import { z } from "zod";
import { isSearch } from "../../src/agents/tools.ts";
import { defined, toView } from "../../src/lib/defined.ts";
import { AppError, invalidRequest } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import type { Platform } from "../../src/platform.ts";
import {
  chooseCollections,
  collectionChoiceSchema,
  collectionNameSchema,
  MAX_NAMED_COLLECTIONS,
} from "../../src/rag/collections.ts";
import type { CollectionNames } from "../../src/store/collection-filter.ts";
import { mapPage } from "../../src/store/page.ts";
import type { ShownWidgetKey } from "../../src/store/widget-key-store.ts";
import { type Caller, endOfMadeKey } from "../../src/tenancy/roles.ts";
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
/** Budgets of a key, in USD a month. */
const LEAST_BUDGET_USD = 1e-6;
const MOST_BUDGET_USD = 1e6;
/** An origin as browsers send it: scheme, host and port, and nothing after. */
const originSchema = z
  .string()
  .max(300)
  .refine((text) => URL.canParse(text) && new URL(text).origin === text, "must be an origin, as https://acme.io");

const originsSchema = z.array(originSchema).min(1).max(50);

const createBody = z.strictObject({
  ...agentFields,
  allowedOrigins: originsSchema.optional(),
  collections: z
    .array(collectionNameSchema)
    .min(1)
    .max(MAX_NAMED_COLLECTIONS)
    .optional()
    .describe("The collections that it answers from; with an agent, all that the agent's search may find"),
  linkOrigins: originsSchema
    .optional()
    .describe("Origins that sources and answers may link to; without it sources have titles and quotes alone"),
  monthlyBudgetUsd: z
    .number()
    .min(LEAST_BUDGET_USD)
    .max(MOST_BUDGET_USD)
    .optional()
    .describe("What it may spend in a month, beside the budget of its tenant"),
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
  collections: z.array(z.string()).optional(),
  searches: z.boolean().optional().describe("Whether it answers from documents"),
  linkOrigins: z.array(z.string()).optional(),
  monthlyBudgetUsd: z.number().optional(),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().optional().describe("When the key that made it ends, if it does"),
});
const toolsLeftOut = z.array(z.string()).optional().describe("Tools of its agent that it does not use, by their names");
const newWidgetKey = z.object({ id: idSchema("apiKey"), key: z.string(), keyPreview: z.string(), toolsLeftOut });

const revokeBody = z.strictObject({
  key: z.string().refine(isWidgetKey, "must be a widget key").optional(),
  id: idSchema("apiKey").optional(),
  keyPreview: z.string().max(50).optional(),
  toolsLeftOut: toolsLeftOut.describe("Not read: the response to POST has it"),
  ...agentFields,
});

const routes = declareRoutes({ auth: "admin", tags: ["Widget keys"], bodyLimit: "settings" });

export const widgetKeyRoutes = [
  routes.post("/ai/widget/key", {
    summary: "Make a publishable key that can only chat",
    description:
      "It may stand in a page or an app. `allowedOrigins` names the pages that may use it; without it any page may. With " +
      "`collections` it answers from their documents, as `/rag/answer` does, and from nothing else. With `agent_id` it chats by " +
      "the model and the system prompt of that agent; if the agent has `rag_query`, each answer is a run of it with that tool " +
      "alone, and `toolsLeftOut` names the others. Without an agent `models` bounds the choice of its visitors. The key is in this response only. " +
      "Unknown fields and parameters are refused.",
    query,
    body: named("WidgetKeyRequest", createBody),
    isBodyOptional: true,
    hasSecretReply: true,
    responses: { 201: { description: "The new key", body: named("NewWidgetKey", newWidgetKey) } },
    errors: ["not_found", "unknown_model", "quota_exceeded"],
    async result({ body: { allowedOrigins, models, maxTokens, monthlyBudgetUsd, ...body }, caller, platform }) {
      const scopedTo = readAgentId(body);
      const { toolsLeftOut, ...scope } = await chooseSources(platform, caller, { ...body, agentId: scopedTo });
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
        ...scope,
        ...defined({ agentId: scopedTo, allowedOrigins, models, maxTokens, monthlyBudgetUsd }),
        ...defined({ expiresAt: endOfMadeKey(caller) }),
      });
      return { id: record._id, key, keyPreview: record.preview, ...defined({ toolsLeftOut }) };
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
    result: ({ body: { key, id, keyPreview, toolsLeftOut: _, ...body }, caller, platform }) =>
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

type Wanted = Pick<z.output<typeof createBody>, "collections" | "linkOrigins"> & { agentId: string | undefined };

/**
 * What a new key may find, and which tools of its agent it leaves out. A key that does not search keeps the limit of its maker,
 * for what it may come to use.
 * @throws AppError `not_found`; `insufficient_scope` beyond the maker's; `invalid_request` for what would have no effect.
 */
async function chooseSources(
  { agents, rag }: Platform,
  caller: Caller,
  { agentId, collections: wanted, linkOrigins }: Wanted,
): Promise<{ collections?: string[]; searches?: true; linkOrigins?: string[]; toolsLeftOut?: string[] }> {
  const names = chooseCollections(caller, wanted);
  await rag.requireCollections(caller, { wanted, param: "collections" });
  const tools = agentId === undefined ? [] : (await agents.get(caller.tenantId, agentId)).tools;
  const searches = agentId === undefined ? wanted !== undefined : tools.some(isSearch);
  if (!searches && wanted)
    throw invalidRequest("collections", "collections: its agent has no rag_query to search them.");
  if (!searches && linkOrigins)
    throw invalidRequest("linkOrigins", "linkOrigins: a key that does not search has no sources.");
  for (const { config } of tools.filter(isSearch)) requireWithin(names, config);
  const leftOut = tools
    .filter((tool) => !isSearch(tool))
    .map(({ name, type }) => (typeof name === "string" ? name : type));
  return {
    ...(names && { collections: [...names] }),
    ...(searches && { searches }),
    ...defined({ linkOrigins, toolsLeftOut: leftOut.length > 0 ? leftOut : undefined }),
  };
}

/** @throws AppError `invalid_request` for a search of other collections than those of the key, which would always fail. */
function requireWithin(names: CollectionNames, config: Record<string, unknown>): void {
  const own = collectionChoiceSchema.optional().parse(config.collection);
  const foreign = [own ?? []].flat().find((name) => names !== undefined && !names.includes(name));
  if (foreign === undefined) return;
  throw invalidRequest("collections", `collections: the search of its agent is of ${foreign}, which is none of them.`);
}

const toKeyView = ({ _id: id, preview: keyPreview, agentId: agent_id, ...rest }: ShownWidgetKey) =>
  toView({ id, keyPreview, agent_id, ...rest });
