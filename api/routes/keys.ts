import { z } from "zod";
import { defined } from "../../src/lib/defined.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { chooseCollections, collectionNameSchema, MAX_NAMED_COLLECTIONS } from "../../src/rag/collections.ts";
import { roles } from "../../src/store/key-store.ts";
import { mapPage } from "../../src/store/page.ts";
import { isTokenSubject } from "../../src/tenancy/access-tokens.ts";
import { apiKeyViewSchema, toApiKeyView } from "../../src/tenancy/api-keys.ts";
import { type Caller, endOfMadeKey } from "../../src/tenancy/roles.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const createBody = named(
  "ApiKeyRequest",
  z.strictObject({
    role: z.enum(roles).default("member"),
    subject: z
      .string()
      .trim()
      .min(1)
      .max(200)
      .refine((text) => !isTokenSubject(text), "must not begin with `token:`, which subjects of access tokens do")
      .optional()
      .describe("Who acts by this key; default: the subject of yours"),
    name: z.string().trim().min(1).max(100).optional(),
    expiresAt: z.iso
      .datetime({ offset: true })
      .refine((text) => !(Date.parse(text) <= Date.now()), "must be in the future")
      .optional()
      .describe("Default, and the latest for a key of an expiring one: when yours ends"),
    collections: z
      .array(collectionNameSchema)
      .min(1)
      .max(MAX_NAMED_COLLECTIONS)
      .optional()
      .describe(
        "The only collections of documents that the key may use, at most those of yours; default: those of yours",
      ),
  }),
);

export const apiKeyListSchema = listOf(apiKeyViewSchema);
export const newApiKeySchema = named("NewApiKey", apiKeyViewSchema.extend({ key: z.string() }));

const routes = declareRoutes({ auth: "owner", tags: ["Keys"], bodyLimit: "settings" });

export const keyRoutes = [
  routes.post("/keys", {
    summary: "Make an API key",
    description:
      "The key is in this answer only. It is not kept, so a repeat with the same `Idempotency-Key` is refused with 409 instead of being answered again.",
    body: createBody,
    example: { role: "member", subject: "ana@acme.io", name: "laptop" },
    hasSecretReply: true,
    errors: ["quota_exceeded"],
    responses: {
      201: { description: "The new key", body: newApiKeySchema },
    },
    async result({ body, caller, platform }) {
      const { role, subject = caller.subject, name, expiresAt: text } = body;
      const collections = collectionsOf(caller, body.collections);
      const expiresAt = endOfMadeKey(caller, text === undefined ? undefined : new Date(text));
      const given = { tenantId: caller.tenantId, role, subject, ...defined({ name, collections, expiresAt }) };
      await platform.quotas.check(caller.tenantId, "keys");
      const { key, record } = await platform.tenancy.createKey(given);
      return { key, ...toApiKeyView(record) };
    },
  }),
  routes.get("/keys", {
    summary: "API keys of the tenant, newest first",
    query: pageQuery("apiKey"),
    responses: { 200: { description: "A page of keys, by their previews", body: apiKeyListSchema } },
    result: async ({ query, caller, platform }) =>
      mapPage(await platform.tenancy.listKeys(caller.tenantId, query), toApiKeyView),
  }),
  routes.delete("/keys/:id", {
    summary: "Revoke an API key",
    description: "It is refused everywhere within 5 seconds. The last owner's key of a tenant cannot be revoked (409).",
    params: z.object({ id: idSchema("apiKey") }),
    responses: { 204: { description: "It was revoked" } },
    errors: ["wrong_state"],
    result: ({ params, caller, platform }) => platform.tenancy.revokeKey(caller.tenantId, params.id),
  }),
];

/** The collections of a new key: a limited key makes no key that may use more. @throws AppError `insufficient_scope`. */
function collectionsOf(caller: Caller, wanted: string[] | undefined): string[] | undefined {
  const names = chooseCollections(caller, wanted);
  return names && [...names];
}
